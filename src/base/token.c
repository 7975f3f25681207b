#include "base/token.h"

#include "base/check.h"
#include "base/mem.h"

#include <stdatomic.h>

_Static_assert(sizeof(void *) == 8, "a token is as large as a pointer, and needs 64 bits");

/* From the highest bits: kind, part, serial, slot. */
#define KIND_SHIFT   61
#define PART_SHIFT   48
#define SERIAL_SHIFT 24
#define PART_MASK    0x1fffu
#define SERIAL_MASK  0xffffffu
#define SLOT_MASK    0xffffffu

#define CHUNK_SLOTS 1024u
#define CHUNKS      ((SLOT_MASK + 1) / CHUNK_SLOTS)
#define NO_SLOT     0u /* slot 0 is never used */

struct entry {
    /* The address with all bits inverted, so that a leak checker still reports an object that
     * only this table knows. */
    _Atomic(uintptr_t) object;
    /* Renewed with release, read with acquire: a thread that sees a new serial also sees its
     * object. */
    _Atomic(uint32_t) serial;
    _Atomic(uint32_t) next; /* the next free slot */
};

/* Published with release when it is filled in; never freed. */
static _Atomic(struct entry *) chunks[CHUNKS];

/* The list of free slots, last freed first: the slot number in the low half, a count of changes
 * in the high half. The count detects that a slot was taken and freed between the read and the
 * exchange. */
static _Atomic(uint64_t) free_head;
static _Atomic(uint32_t) used = 1; /* slots that were ever used, including slot 0 */

static struct entry *base_token_entry(uint32_t slot)
{
    struct entry *c = atomic_load_explicit(&chunks[slot / CHUNK_SLOTS], memory_order_acquire);
    return c ? &c[slot % CHUNK_SLOTS] : NULL;
}

static struct entry *make_entry(uint32_t slot)
{
    struct entry *found = base_token_entry(slot);
    if (found)
        return found;
    struct entry *fresh = mem_zalloc(CHUNK_SLOTS * sizeof(*fresh));
    struct entry *other = NULL;
    if (!atomic_compare_exchange_strong(&chunks[slot / CHUNK_SLOTS], &other, fresh))
        mem_free(fresh);
    return base_token_entry(slot);
}

static uint32_t pop_free(void)
{
    uint64_t head = atomic_load(&free_head);
    for (;;) {
        uint32_t slot = (uint32_t)head;
        if (slot == NO_SLOT)
            return NO_SLOT;
        uint64_t next = atomic_load(&base_token_entry(slot)->next) | ((head >> 32) + 1) << 32;
        if (atomic_compare_exchange_weak(&free_head, &head, next))
            return slot;
    }
}

uint32_t token_open(void *object)
{
    uint32_t slot = pop_free();
    if (slot == NO_SLOT)
        slot = atomic_fetch_add(&used, 1);
    CHECK(slot <= SLOT_MASK); /* at most 16 million objects at one time */
    struct entry *e = make_entry(slot);
    atomic_store_explicit(&e->object, ~(uintptr_t)object, memory_order_relaxed);
    token_renew(slot);
    return slot;
}

void token_close(uint32_t slot)
{
    struct entry *e = base_token_entry(slot);
    token_renew(slot);
    uint64_t head = atomic_load(&free_head);
    uint64_t mine;
    do {
        atomic_store(&e->next, (uint32_t)head);
        mine = slot | ((head >> 32) + 1) << 32;
    } while (!atomic_compare_exchange_weak(&free_head, &head, mine));
}

void token_renew(uint32_t slot)
{
    struct entry *e = base_token_entry(slot);
    uint32_t serial = atomic_load_explicit(&e->serial, memory_order_relaxed);
    atomic_store_explicit(&e->serial, serial + 1, memory_order_release);
}

void *token_make(uint32_t slot, enum token_kind kind, uint32_t part)
{
    uint32_t serial = atomic_load_explicit(&base_token_entry(slot)->serial, memory_order_relaxed);
    return (void *)(uintptr_t)((uint64_t)kind << KIND_SHIFT |
                               (uint64_t)(part & PART_MASK) << PART_SHIFT |
                               (uint64_t)(serial & SERIAL_MASK) << SERIAL_SHIFT | slot);
}

uint32_t token_part(const void *token)
{
    return (uintptr_t)token >> PART_SHIFT & PART_MASK;
}

void *token_find(const void *token, enum token_kind kind, uint32_t *ret_part)
{
    uint64_t v = (uintptr_t)token;
    struct entry *e = base_token_entry((uint32_t)(v & SLOT_MASK));
    if (v >> KIND_SHIFT != (uint64_t)kind || !e)
        return NULL;
    uint32_t serial = atomic_load_explicit(&e->serial, memory_order_acquire);
    if ((serial & SERIAL_MASK) != (v >> SERIAL_SHIFT & SERIAL_MASK))
        return NULL;
    if (ret_part)
        *ret_part = token_part(token);
    uintptr_t turned = atomic_load_explicit(&e->object, memory_order_relaxed);
    return turned ? (void *)~turned : NULL; /* 0: the slot was never used */
}

void *token_take(const void *token, enum token_kind kind)
{
    void *object = token_find(token, kind, NULL);
    if (!object)
        return NULL;
    uint64_t v = (uintptr_t)token;
    struct entry *e = base_token_entry((uint32_t)(v & SLOT_MASK));
    uint32_t serial = atomic_load_explicit(&e->serial, memory_order_relaxed);
    bool same = (serial & SERIAL_MASK) == (v >> SERIAL_SHIFT & SERIAL_MASK);
    /* Acquire and release: the thread that succeeds sees what was done under the token; others
     * find it stale. */
    if (!same || !atomic_compare_exchange_strong_explicit(
                     &e->serial, &serial, serial + 1, memory_order_acq_rel, memory_order_relaxed))
        return NULL;
    return object;
}

bool token_was(const void *token, enum token_kind kind)
{
    uint64_t v = (uintptr_t)token;
    uint32_t slot = (uint32_t)(v & SLOT_MASK);
    return v >> KIND_SHIFT == (uint64_t)kind && slot != NO_SLOT && slot < atomic_load(&used);
}
