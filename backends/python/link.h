#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the server and a stub share: one piece of memory with two rings of records, one for each
 * direction, and behind them room for large tensors (arena.h). Both sides compile this file;
 * neither
 * believes what the other wrote: positions and sizes are read once and checked.
 * docs/decisions/0121. */

enum {
    LINK_HEAD_BYTES = 4096,
    LINK_RING_BYTES = 1 << 18,
    LINK_RECORD_MAX = LINK_RING_BYTES / 4, /* of one record; what is longer lies elsewhere */
    LINK_INLINE_MAX = 8192,                /* bytes of a tensor within a record */
    LINK_ARENA = LINK_HEAD_BYTES + 2 * LINK_RING_BYTES,
};

/* As much address space as the whole of it can ever have. */
#define LINK_MAPPED ((size_t)1 << 36)

/* Bytes of a record that lies elsewhere, at most. */
#define LINK_FAR_MAX ((uint64_t)1 << 30)

/* Kinds of records to the stub ("down") and to the server ("up"). */
enum link_kind {
    LINK_PAD, /* nothing: the rest of the ring's end */
    /* down */
    LINK_COMPLETE,   /* fill in a configuration */
    LINK_INITIALIZE, /* make the model; id = 1 for a decoupled one */
    LINK_EXECUTE,    /* requests */
    LINK_FINALIZE,   /* end the model and the process */
    LINK_REPLY,      /* to the call with this id */
    LINK_NESTED,     /* a response to the nested request with this id */
    LINK_RELEASE,    /* what the record with this id pointed at was read */
    /* up */
    LINK_HELLO,    /* the stub runs */
    LINK_RESULT,   /* of LINK_COMPLETE, LINK_INITIALIZE, LINK_FINALIZE */
    LINK_EXECUTED, /* of LINK_EXECUTE */
    LINK_SEND,     /* a response by a sender */
    LINK_DROP,     /* a sender is gone; id = its request */
    LINK_INFER,    /* a nested request */
    LINK_CALL,     /* anything else that is asked of the server (calls.h) */
    LINK_FREE,     /* a tensor's place is free again; id = the place, or a loan's number (lend.h) */
    LINK_ROOM,     /* the ring down has room again */
    LINK_KINDS,
    LINK_KEPT = 0x200, /* flag, up: LINK_RELEASE is waited for */
    LINK_FAR = 0x100,  /* flag: the record lies elsewhere, this one says where: struct link_far */
};

struct link_far {
    uint64_t at; /* down: offset in the shared memory; up: address in the stub */
    uint64_t bytes;
};

/* Who waits, in the shared memory: the reader of a ring or who listens, both on futexes, or an
 * event loop, on an eventfd: the bell. A descriptor is one that a model may close, and whose number
 * is another file's then: it is looked at each time before it is written to, and where it is no
 * bell, who listens is called instead. */
enum { LINK_AWAKE, LINK_SLEEPS, LINK_LISTENS, LINK_POLLS };

/* Flags in the shared memory that the server sets before the stub runs. */
enum { LINK_NO_READING = 1 }; /* the server cannot read the stub's memory */

/* One side's view of a ring. */
struct link_end {
    struct link_ring *ring; /* shared */
    char *data;             /* shared, LINK_RING_BYTES */
    uint64_t position;      /* this side's own */
    int bell;               /* an eventfd, of the ring up; -1 = none */
};

struct link_record {
    uint32_t kind;
    uint32_t bytes;
    uint64_t id;
    const char *payload; /* shared: copy it before it is looked at */
};

/* link_open - see a mapping's rings.
 * base     the mapping; zeroed before the first side opens it
 * bell     that of the ring up; borrowed
 * ret_down, ret_up  owned by the caller */
void link_open(char *base, int bell, struct link_end *ret_down, struct link_end *ret_up);

/* link_flags - where the flags of the server stand. */
_Atomic uint32_t *link_flags(char *base);

/* link_put - write a record; one writer at a time.
 * returns  false when there is no room for it now
 * wake     false = the reader may sleep on */
bool link_put(struct link_end *end, uint32_t kind, uint64_t id, const void *payload, size_t bytes,
              bool wake);

/* link_is_broken - whether the other side has read more than was written, as its memory says: then
 * there will never be room. */
bool link_is_broken(const struct link_end *end);

/* link_peek - look at the next record; one reader at a time.
 * returns  1 = a record, 0 = none, -1 = the other side broke the ring */
int link_peek(struct link_end *end, struct link_record *ret_record);

/* link_done - give the room of the record that was peeked at back. */
void link_done(struct link_end *end, const struct link_record *record);

/* link_sleep - wait until there is a record or the time is over; returns at once when there is one.
 * A wait may end without either. */
void link_sleep(struct link_end *end, uint64_t timeout_ns);

/* link_wake - end a link_sleep. */
void link_wake(struct link_end *end);

/* link_was_read - whether the other side has read anything that was written behind a position. */
bool link_was_read(const struct link_end *end, uint64_t position);

/* link_listen - nobody reads any more: from now on a new record ends link_await.
 * returns  false when there is one already: nothing was changed */
bool link_listen(struct link_end *end);

/* link_poll - the same, but a new record rings the bell. */
bool link_poll(struct link_end *end);

/* link_ring - ring the bell, or end a link_await where there is none. */
void link_ring(struct link_end *end);

/* link_await - wait until something came after what was heard last; by one thread. It may return
 * without that.
 * heard    what link_await returned the time before; 0 = the first time */
uint32_t link_await(struct link_end *end, uint32_t heard);

/* link_call - end a link_await, the next one if there is none. */
void link_call(struct link_end *end);

/* link_attend - from now on the reader looks by itself, or sleeps in link_sleep. */
void link_attend(struct link_end *end);

/* link_ask_room, link_take_room - the writer wants to know when there is room; the reader looks
 * whether it does, once. */
void link_ask_room(struct link_end *end);
bool link_take_room(struct link_end *end);
