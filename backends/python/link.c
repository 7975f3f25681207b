#include "link.h"

#include <linux/futex.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { LINK_LINE = 64, LINK_ALIGN = 16 };

/* How long one listens at most: a process that writes where it should not may undo a call. */
static const uint64_t LISTEN_NS = 10000000000;

/* In the shared memory. Sequentially consistent throughout: a writer sets `head` and then looks who
 * waits, a reader says that it waits and then looks at `head`; one of them sees the other. */
struct link_ring {
    _Alignas(LINK_LINE) _Atomic uint64_t head;    /* bytes ever written */
    _Alignas(LINK_LINE) _Atomic uint64_t tail;    /* bytes ever read */
    _Alignas(LINK_LINE) _Atomic uint32_t waiting; /* LINK_AWAKE, ... */
    _Atomic uint32_t bell;                        /* the futex of who sleeps */
    _Atomic uint32_t call;                        /* of who listens */
    _Atomic uint32_t wants_room;
};

struct link_front {
    struct link_ring down, up;
    _Atomic uint32_t flags;
};

struct link_header {
    uint32_t kind;
    uint32_t bytes;
    uint64_t id;
};

static uint64_t whole(uint64_t bytes)
{
    return (sizeof(struct link_header) + bytes + LINK_ALIGN - 1) & ~(uint64_t)(LINK_ALIGN - 1);
}

void link_open(char *base, int bell, struct link_end *ret_down, struct link_end *ret_up)
{
    struct link_front *front = (struct link_front *)base;
    char *data = base + LINK_HEAD_BYTES;
    *ret_down = (struct link_end){.ring = &front->down, .data = data, .bell = -1};
    *ret_up = (struct link_end){.ring = &front->up, .data = data + LINK_RING_BYTES, .bell = bell};
}

_Atomic uint32_t *link_flags(char *base)
{
    return &((struct link_front *)base)->flags;
}

static void link_notify(struct link_end *end)
{
    uint32_t waiting = atomic_exchange(&end->ring->waiting, LINK_AWAKE);
    if (waiting == LINK_SLEEPS)
        link_wake(end);
    else if (waiting == LINK_LISTENS)
        link_call(end);
    else if (waiting == LINK_POLLS)
        link_ring(end);
}

static void link_write(struct link_end *end, uint64_t at, const struct link_header *header,
                       const void *payload)
{
    char *place = end->data + at % LINK_RING_BYTES;
    memcpy(place, header, sizeof *header);
    if (payload && header->bytes)
        memcpy(place + sizeof *header, payload, header->bytes);
}

bool link_is_broken(const struct link_end *end)
{
    return end->position - atomic_load(&end->ring->tail) > LINK_RING_BYTES;
}

bool link_put(struct link_end *end, uint32_t kind, uint64_t id, const void *payload, size_t bytes,
              bool wake)
{
    uint64_t used = end->position - atomic_load(&end->ring->tail);
    uint64_t left = LINK_RING_BYTES - end->position % LINK_RING_BYTES;
    uint64_t need = whole(bytes);
    uint64_t pad = left < need ? left : 0; /* a record is in one piece */
    if (bytes > LINK_RECORD_MAX || used > LINK_RING_BYTES || LINK_RING_BYTES - used < need + pad)
        return false;
    if (pad) {
        struct link_header skip = {.kind = LINK_PAD,
                                   .bytes = (uint32_t)(pad - sizeof(struct link_header))};
        link_write(end, end->position, &skip, NULL);
        end->position += pad;
    }
    struct link_header header = {.kind = kind, .bytes = (uint32_t)bytes, .id = id};
    link_write(end, end->position, &header, payload);
    end->position += need;
    atomic_store(&end->ring->head, end->position);
    if (wake)
        link_notify(end);
    return true;
}

int link_peek(struct link_end *end, struct link_record *ret_record)
{
    for (;;) {
        uint64_t there = atomic_load(&end->ring->head) - end->position;
        if (there == 0)
            return 0;
        uint64_t at = end->position % LINK_RING_BYTES;
        struct link_header header;
        if (there > LINK_RING_BYTES || there < sizeof header)
            return -1;
        memcpy(&header, end->data + at, sizeof header);
        uint64_t need = whole(header.bytes);
        if (need > there || need > LINK_RING_BYTES - at)
            return -1;
        if (header.kind != LINK_PAD) {
            *ret_record = (struct link_record){.kind = header.kind,
                                               .bytes = header.bytes,
                                               .id = header.id,
                                               .payload = end->data + at + sizeof header};
            return 1;
        }
        end->position += need;
        atomic_store(&end->ring->tail, end->position);
    }
}

void link_done(struct link_end *end, const struct link_record *record)
{
    end->position += whole(record->bytes);
    atomic_store(&end->ring->tail, end->position);
}

static bool link_is_empty(struct link_end *end)
{
    return atomic_load(&end->ring->head) == end->position;
}

/* Sleeps as long as the futex has this value. */
static void futex_sleep(_Atomic uint32_t *futex, uint32_t value, uint64_t timeout_ns)
{
    struct timespec wait = {.tv_sec = (time_t)(timeout_ns / 1000000000),
                            .tv_nsec = (long)(timeout_ns % 1000000000)};
    syscall(SYS_futex, futex, FUTEX_WAIT, value, &wait, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *futex)
{
    atomic_fetch_add(futex, 1);
    syscall(SYS_futex, futex, FUTEX_WAKE, 1, NULL, NULL, 0);
}

void link_sleep(struct link_end *end, uint64_t timeout_ns)
{
    uint32_t bell = atomic_load(&end->ring->bell);
    atomic_store(&end->ring->waiting, LINK_SLEEPS);
    if (link_is_empty(end))
        futex_sleep(&end->ring->bell, bell, timeout_ns);
    atomic_store(&end->ring->waiting, LINK_AWAKE);
}

void link_wake(struct link_end *end)
{
    futex_wake(&end->ring->bell);
}

bool link_was_read(const struct link_end *end, uint64_t position)
{
    return end->position - atomic_load(&end->ring->tail) < end->position - position;
}

/* Says how a new record is waited for, unless there is one. */
static bool link_waits(struct link_end *end, uint32_t how)
{
    atomic_store(&end->ring->waiting, how);
    if (link_is_empty(end))
        return true;
    atomic_store(&end->ring->waiting, LINK_AWAKE);
    return false;
}

bool link_listen(struct link_end *end)
{
    return link_waits(end, LINK_LISTENS);
}

bool link_poll(struct link_end *end)
{
    return link_waits(end, LINK_POLLS);
}

/* An eventfd is of no type that a file in a folder, a pipe or a socket has. */
static bool link_has_bell(const struct link_end *end)
{
    struct stat told;
    return end->bell >= 0 && fstat(end->bell, &told) == 0 && !(told.st_mode & S_IFMT);
}

void link_ring(struct link_end *end)
{
    uint64_t one = 1;
    if (!link_has_bell(end) || write(end->bell, &one, sizeof one) != sizeof one)
        link_call(end);
}

uint32_t link_await(struct link_end *end, uint32_t heard)
{
    futex_sleep(&end->ring->call, heard, LISTEN_NS);
    return atomic_load(&end->ring->call);
}

void link_call(struct link_end *end)
{
    futex_wake(&end->ring->call);
}

void link_attend(struct link_end *end)
{
    atomic_store(&end->ring->waiting, LINK_AWAKE);
}

void link_ask_room(struct link_end *end)
{
    atomic_store(&end->ring->wants_room, 1);
}

bool link_take_room(struct link_end *end)
{
    return atomic_load(&end->ring->wants_room) && atomic_exchange(&end->ring->wants_room, 0);
}
