#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "arena.h"
#include "link.h"
#include "options.h"
#include "triton/core/tritonserver.h"
#include "wire.h"

/* One stub: a process with a Python in it, and this server's end of the link to it.
 *
 * Whoever waits for the stub reads what it sends (stub_hold, stub_wait, stub_let); while nobody
 * does, a thread of the stub's own sleeps until something comes. Another one sleeps until the
 * process ends. Nothing that it sends is believed. */

/* A record that a stub sent, in this server's own memory. */
struct heard {
    uint32_t kind; /* enum link_kind, without flags */
    uint64_t id;
    size_t bytes;
    char *data; /* valid during the call; set to NULL to keep it: free */
};

/* Called for what a stub sends, by whoever reads: one call at a time. */
typedef void stub_heard_fn(void *of, struct heard *heard);

/* Called once when the process has ended by itself, and all that it sent was heard. */
typedef void stub_ended_fn(void *of);

struct late; /* records that wait for room in the ring */

struct stub {
    atomic_uint refs;
    char *name; /* of what runs in it, for errors */
    pid_t pid;
    int process, memory, life; /* descriptors; process = pidfd */
    char *base;
    struct arena arena;
    pthread_t watcher, listener;
    bool watched, listened;
    atomic_bool dead, stopping;
    atomic_bool leaving; /* it was told to end by itself */
    atomic_bool killed;  /* by this server */
    bool greeted, readable;
    uint64_t looked_ns; /* whether a signal has stopped it; with `stopped`, since stub_hold */
    unsigned stopped;   /* how often it had, one after the other */
    bool parted;        /* the bell rings for what comes; guarded by `reading` */

    pthread_mutex_t reading; /* guards `up`, `scratch`, and what the callbacks use */
    struct link_end up;
    char *scratch;
    size_t scratch_bytes;
    stub_heard_fn *heard; /* NULL = nobody listens any more */
    stub_ended_fn *ended;
    void *of;

    pthread_mutex_t sending; /* guards `down` and `late`, and `name`'s change; within `reading` */
    struct link_end down;
    struct late *late, **late_end;
};

/* stub_start - start a process and wait until it runs.
 * name      what runs in it, for errors; copied
 * activate  the script of its environment; NULL = none
 * bell      an eventfd (stub_bell); borrowed until the process has ended
 * heard, ended, of  who is told
 * ret_stub  owned by the caller: stub_end
 * errors    INTERNAL: it does not run */
TRITONSERVER_Error *stub_start(const struct options *options, const char *name,
                               const char *activate, int bell, stub_heard_fn *heard,
                               stub_ended_fn *ended, void *of, struct stub **ret_stub);

/* stub_bell - make the bell of an event loop that waits for stubs; -1 = none is to be had. */
int stub_bell(void);

/* stub_end - end the process, if it did not end, and whatever it started. Not under `reading`.
 * NULL is allowed. Those who have a reference may go on calling stub_send. */
void stub_end(struct stub *stub);

/* stub_rename - what runs in it from now on. Under stub_hold.
 * name  owned by the callee */
void stub_rename(struct stub *stub, char *name);

struct stub *stub_ref(struct stub *stub);
void stub_unref(struct stub *stub);

/* stub_hold, stub_let - read what the stub sends from now on, until stub_let. */
void stub_hold(struct stub *stub);
void stub_let(struct stub *stub);

/* For an event loop, which waits for no lock and for no record:
 * stub_try_hold - stub_hold, unless somebody else has it.
 * stub_leave    - stub_let, but what is there is read by a thread of the stub's own.
 * stub_part     - in its place: the bell rings when something comes.
 * stub_turn_away - in its place: whoever turns away looks again at once, and no bell rings.
 * stub_look     - read what is there, as stub_wait, but not much, and nothing that is long; under
 *                 stub_hold. */
enum stub_look { STUB_LOOK_DONE, STUB_LOOK_AGAIN, STUB_LOOK_LONG };
bool stub_try_hold(struct stub *stub);
void stub_leave(struct stub *stub);
void stub_part(struct stub *stub);
void stub_turn_away(struct stub *stub);
enum stub_look stub_look(struct stub *stub, const bool *done);

enum stub_wait { STUB_DONE, STUB_DEAD, STUB_LATE, STUB_STOPPED };

/* stub_wait - read and call `heard` until something is done; under stub_hold.
 * done         set by what is called
 * deadline_ns  on stub_now; 0 = none
 * returns      STUB_DEAD: it has ended; STUB_STOPPED: a signal has stopped it, for seconds */
enum stub_wait stub_wait(struct stub *stub, const bool *done, uint64_t deadline_ns);

uint64_t stub_now(void);

/* stub_kill - end the process; stub_wait then sees that. */
void stub_kill(struct stub *stub);

/* stub_send - send a record, now or when there is room. Any thread.
 * returns  false: the stub is gone, or there is no memory */
bool stub_send(struct stub *stub, uint32_t kind, uint64_t id, const void *payload, size_t bytes);

/* stub_mark, stub_was_read - whether the stub has looked at anything that was sent after
 * stub_mark. */
uint64_t stub_mark(struct stub *stub);
bool stub_was_read(struct stub *stub, uint64_t mark);

/* stub_fetch - copy the bytes of a tensor that the stub described.
 * returns  false: they are not where it says */
bool stub_fetch(struct stub *stub, const struct wire_tensor *tensor, void *to);
