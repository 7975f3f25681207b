#include "channel.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "../link.h"

/* How long a sleep lasts at most: a lost wake-up costs this much, not the process. */
static const uint64_t CHANNEL_SLEEP_NS = 1000000000;

enum { CHANNEL_ASIDE = 200 }; /* numbers from here on are rarely used */

struct inbox {
    struct inbox *next;
    uint64_t id;
    struct channel_record *first, **last;
};

static struct {
    char *base;
    struct link_end down, up;
    pthread_mutex_t sending; /* guards `up` */
    pthread_mutex_t lock;    /* guards what follows */
    pthread_cond_t changed;
    bool reading; /* one of those who wait reads */
    uint32_t waiting;
    struct inbox model; /* id 0 */
    struct inbox *others;
    uint64_t last_id;
    int life;
    atomic_bool closed;
} channel = {.sending = PTHREAD_MUTEX_INITIALIZER,
             .lock = PTHREAD_MUTEX_INITIALIZER,
             .changed = PTHREAD_COND_INITIALIZER};

/* The server holds the other end: when that closes, the server is gone, and so goes this process
 * with all that it started. */
static void *channel_watch(void *started)
{
    struct pollfd end = {.fd = channel.life, .events = POLLIN};
    /* Descriptors of its own: a model that closes what is not its own closes them for the other
     * threads only. */
    close_range(~0U, ~0U, CLOSE_RANGE_UNSHARE);
    sem_post(started);
    for (;;) {
        /* Whatever there is: where the model has closed it, it is an invalid one by then. */
        if (poll(&end, 1, -1) > 0) {
            kill(-getpid(), SIGKILL); /* not 0: the model may have joined another group */
            kill(getpid(), SIGKILL);
        }
    }
    return NULL;
}

/* No other thread holds a lock when a model forks: in the child nobody would ever let go of it. */
static void channel_hold(void)
{
    pthread_mutex_lock(&channel.lock);
    pthread_mutex_lock(&channel.sending);
}

static void channel_let(void)
{
    pthread_mutex_unlock(&channel.sending);
    pthread_mutex_unlock(&channel.lock);
}

static void channel_in_child(void)
{
    atomic_store(&channel.closed, true);
    channel_let();
}

/* The bell gets a number that nothing else will get once the model has closed it. */
static int channel_aside(int bell)
{
    int moved = fcntl(bell, F_DUPFD_CLOEXEC, CHANNEL_ASIDE);
    if (moved < 0) {
        fcntl(bell, F_SETFD, FD_CLOEXEC);
        return bell;
    }
    close(bell);
    return moved;
}

bool channel_open(int memory, int life, int bell)
{
    /* What a model executes has none of them: the server sees that the stub is gone. */
    fcntl(memory, F_SETFD, FD_CLOEXEC);
    fcntl(life, F_SETFD, FD_CLOEXEC);
    void *base =
        mmap(NULL, LINK_MAPPED, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, memory, 0);
    if (base == MAP_FAILED)
        return false;
    channel.base = base;
    channel.life = life;
    channel.model.last = &channel.model.first;
    link_open(base, channel_aside(bell), &channel.down, &channel.up);
    pthread_atfork(channel_hold, channel_let, channel_in_child);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    static sem_t started;
    sem_init(&started, 0, 0);
    int failed = pthread_create(&thread, NULL, channel_watch, &started);
    while (!failed && sem_wait(&started) != 0)
        ;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return !failed && pthread_detach(thread) == 0;
}

bool channel_send(uint32_t kind, uint64_t id, const void *payload, size_t bytes)
{
    /* The server looks for places that are free when it looks for anything else. */
    bool wake = kind != LINK_FREE;
    while (!atomic_load(&channel.closed)) {
        pthread_mutex_lock(&channel.sending);
        bool done = link_put(&channel.up, kind, id, payload, bytes, wake);
        if (link_is_broken(&channel.up))
            abort(); /* the model wrote there: the server is believed, and does not */
        pthread_mutex_unlock(&channel.sending);
        if (done)
            return true;
        sched_yield(); /* the server reads all the time: the ring is empty soon */
        wake = true;
    }
    return false;
}

static void channel_push(struct inbox *inbox, struct channel_record *record)
{
    record->next = NULL;
    *inbox->last = record;
    inbox->last = &record->next;
}

static struct inbox *channel_inbox(uint64_t id)
{
    if (id == 0)
        return &channel.model;
    struct inbox *inbox = channel.others;
    while (inbox && inbox->id != id)
        inbox = inbox->next;
    return inbox;
}

static struct channel_record *channel_copy(const struct link_record *record)
{
    bool far = record->kind & LINK_FAR;
    struct channel_record *made = malloc(sizeof *made + (far ? 0 : record->bytes));
    if (!made)
        abort(); /* a small one: there is no memory at all */
    *made = (struct channel_record){
        .kind = record->kind & ~(uint32_t)LINK_FAR, .bytes = record->bytes, .id = record->id};
    if (far) {
        struct link_far where;
        memcpy(&where, record->payload, sizeof where);
        made->place = where.at;
        made->bytes = where.bytes;
        made->data = channel.base + where.at;
    } else {
        made->data = (char *)(made + 1);
        memcpy(made->data, record->payload, record->bytes);
    }
    return made;
}

/* Hands a record to whom it is for. What nobody waits for any more is returned. */
static struct channel_record *channel_route(struct channel_record *record)
{
    bool answers = record->kind == LINK_REPLY || record->kind == LINK_NESTED;
    bool may_be_answer = answers || record->kind == LINK_RELEASE;
    struct inbox *inbox = channel_inbox(may_be_answer ? record->id : 0);
    if (!inbox && !answers)
        inbox = &channel.model;
    if (!inbox)
        return record;
    channel_push(inbox, record);
    return NULL;
}

/* Reads what is there, or waits for it; by one thread at a time. */
static void channel_read(void)
{
    struct link_record record;
    int got = link_peek(&channel.down, &record);
    if (got == 0) {
        link_sleep(&channel.down, CHANNEL_SLEEP_NS);
        return;
    }
    if (got < 0)
        abort(); /* the server is the one that is believed */
    struct channel_record *made = channel_copy(&record);
    link_done(&channel.down, &record);
    pthread_mutex_lock(&channel.lock);
    made = channel_route(made);
    pthread_mutex_unlock(&channel.lock);
    channel_free(made);
    if (link_take_room(&channel.down))
        channel_send(LINK_ROOM, 0, NULL, 0);
}

uint64_t channel_expect(void)
{
    struct inbox *inbox = calloc(1, sizeof *inbox);
    if (!inbox)
        abort();
    inbox->last = &inbox->first;
    pthread_mutex_lock(&channel.lock);
    inbox->id = ++channel.last_id;
    inbox->next = channel.others;
    channel.others = inbox;
    pthread_mutex_unlock(&channel.lock);
    return inbox->id;
}

uint64_t channel_number(void)
{
    pthread_mutex_lock(&channel.lock);
    uint64_t id = ++channel.last_id;
    pthread_mutex_unlock(&channel.lock);
    return id;
}

struct channel_record *channel_wait(uint64_t id)
{
    struct channel_record *record = NULL;
    struct inbox *inbox;
    pthread_mutex_lock(&channel.lock);
    channel.waiting++;
    while (!atomic_load(&channel.closed) && (inbox = channel_inbox(id)) && !inbox->first) {
        if (channel.reading) {
            pthread_cond_wait(&channel.changed, &channel.lock);
            continue;
        }
        channel.reading = true;
        pthread_mutex_unlock(&channel.lock);
        channel_read();
        pthread_mutex_lock(&channel.lock);
        channel.reading = false;
        if (channel.waiting > 1)
            pthread_cond_broadcast(&channel.changed);
    }
    channel.waiting--;
    inbox = channel_inbox(id);
    if (inbox && inbox->first) {
        record = inbox->first;
        inbox->first = record->next;
        if (!inbox->first)
            inbox->last = &inbox->first;
    }
    pthread_mutex_unlock(&channel.lock);
    return record;
}

void channel_forget(uint64_t id)
{
    pthread_mutex_lock(&channel.lock);
    struct inbox **at = &channel.others;
    while (*at && (*at)->id != id)
        at = &(*at)->next;
    struct inbox *inbox = *at;
    if (inbox)
        *at = inbox->next;
    pthread_mutex_unlock(&channel.lock);
    while (inbox && inbox->first) {
        struct channel_record *record = inbox->first;
        inbox->first = record->next;
        channel_free(record);
    }
    free(inbox);
}

void channel_give_back(uint64_t place)
{
    channel_send(LINK_FREE, place, NULL, 0);
}

void channel_free(struct channel_record *record)
{
    if (record && record->place)
        channel_give_back(record->place);
    free(record);
}

char *channel_at(uint64_t place, uint64_t bytes)
{
    bool inside = place >= LINK_ARENA && place < LINK_MAPPED && bytes <= LINK_MAPPED - place;
    return inside ? channel.base + place : NULL;
}

uint64_t channel_place(const void *at, uint64_t bytes)
{
    uintptr_t base = (uintptr_t)channel.base, here = (uintptr_t)at;
    if (here < base + LINK_ARENA || here - base > LINK_MAPPED ||
        bytes > LINK_MAPPED - (here - base))
        return 0;
    return here - base;
}

bool channel_is_read(void)
{
    return !(atomic_load(link_flags(channel.base)) & LINK_NO_READING);
}

bool channel_reads(const void *at, uint64_t bytes)
{
    char ends[2], *last = (char *)(uintptr_t)at + bytes - 1;
    struct iovec here = {.iov_base = ends, .iov_len = sizeof ends};
    struct iovec there[] = {{.iov_base = (void *)(uintptr_t)at, .iov_len = 1},
                            {.iov_base = last, .iov_len = 1}};
    return channel_is_read() && process_vm_readv(getpid(), &here, 1, there, 2, 0) == sizeof ends;
}
