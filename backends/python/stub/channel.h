#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A stub's end of the link to the server, for all threads of the process. Nothing here knows
 * Python:
 * whoever calls what may wait lets go of the interpreter's lock first.
 *
 * There is no thread that reads. Whoever waits for a record reads what comes, and hands on what is
 * for others; when several wait, one of them reads. */

/* A record that came: a copy, or the place in the shared memory where it lies. */
struct channel_record {
    struct channel_record *next;
    uint32_t kind;
    size_t bytes;
    uint64_t id;
    uint64_t place; /* offset in the shared memory, given back by channel_free; 0 = a copy */
    char *data;
};

/* channel_open - take up the link; once.
 * memory, life, bell  descriptors, kept; the end of `life` ends the process and its children
 * errors   false with errno */
bool channel_open(int memory, int life, int bell);

/* channel_send - write a record, waiting for room.
 * returns  false: the link is gone, as in a child that the model forked */
bool channel_send(uint32_t kind, uint64_t id, const void *payload, size_t bytes);

/* channel_expect - give the id of something that is going to be answered. */
uint64_t channel_expect(void);

/* channel_number - give an id that nobody waits for: its LINK_RELEASE comes to the model. */
uint64_t channel_number(void);

/* channel_wait - wait for a record with this id; 0 = those for the model.
 * returns  owned by the caller: channel_free; NULL = the link is gone, or the id is not expected */
struct channel_record *channel_wait(uint64_t id);

/* channel_forget - nobody waits for this id any more; what came is freed. */
void channel_forget(uint64_t id);

void channel_free(struct channel_record *record);

/* channel_give_back - a place in the shared memory is not used any more. */
void channel_give_back(uint64_t place);

/* channel_at - where an offset of the shared memory is; NULL = outside. */
char *channel_at(uint64_t place, uint64_t bytes);

/* channel_place - the offset of an address in the shared memory; 0 = elsewhere. */
uint64_t channel_place(const void *at, uint64_t bytes);

/* channel_is_read - whether the server can read this process's memory by itself. */
bool channel_is_read(void);

/* channel_reads - whether it can read these bytes so: what a driver has mapped, as CUDA's pinned
 * memory, it may not. */
bool channel_reads(const void *at, uint64_t bytes);
