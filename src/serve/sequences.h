#pragma once
/* Sequences in front of a stateful model: what its requests must say, the control inputs that they get, the rows of a batch that no
 * sequence fills, and iterative sequences, whose requests the backend gives back to have them again. Which request runs when is the
 * sequencer's to say (sched/sequencer.h).
 *
 * source  spec/model_config_proto.txt, ModelSequenceBatching; spec/sequence_extension.txt */
#include "base/err.h"
#include "base/list.h"
#include "os/clock.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct model_config;
struct request;
struct runner;
struct sequence_controls;
struct sequencer;
struct serve_version;
struct state_plan;

struct sequences {
    struct sequencer *queue;            /* owned; guarded by version->lock */
    struct sequence_controls *controls; /* owned; immutable */
    struct state_plan *states;          /* owned; immutable; NULL = the model has none */
    bool iterative;
    atomic_uint_fast64_t last_id; /* iterative: the correlation id that was given out last */
    char conflict
        [80]; /* id of a sequence that began anew before it ended, not logged yet; guarded by version->lock */
    struct list
        zeros; /* inputs of requests that fill a gap, largest last; guarded by version->lock */
};

/* sequences_new - NULL when the model has no sequence_batching. Blocks: reads the files that states begin with.
 * model_dir  the model's directory
 * errors     of sequence_state_plan
 * sequences_free - no request is left; idle sequences are forgotten. NULL is fine. */
struct err *sequences_new(const struct model_config *config, const char *model_dir,
                          struct sequences **ret);
void sequences_free(struct sequences *s);

/* sequences_forget - end all sequences before the instances go; no request is left. Caller holds v->lock. */
void sequences_forget(struct sequences *s);

/* sequences_admit - before requests are queued: those that cannot be part of a sequence are taken out of the list and answered, the
 * others get their control inputs. Lock not held. */
void sequences_admit(struct serve_version *v, struct list *requests);

/* sequences_push - queue a request; false: it continues a sequence that nobody started, and stays the caller's (sequences_unknown).
 * Caller holds v->lock. */
bool sequences_push(struct serve_version *v, struct request *r, time_ns now);

/* sequences_report - log what sequences_push noticed. Lock not held. */
void sequences_report(struct serve_version *v);

/* sequences_unknown - the error of such a request. */
struct err *sequences_unknown(const struct serve_version *v, const struct request *r);

/* sequences_wake - wake the instances for which something came. Caller holds v->lock; it may be released meanwhile. */
void sequences_wake(struct serve_version *v);

/* sequences_take - as batcher_take, into r->batch. Caller holds v->lock. */
size_t sequences_take(struct runner *r, time_ns now, time_ns *ret_wake);

/* sequences_sample - a request of a warm-up, which is of no sequence, gets the states that it does not bring. Any version.
 * errors  INVALID_ARG: too many inputs */
struct err *sequences_sample(struct serve_version *v, struct request *r);

/* sequences_again, sequences_ended - of request_target: the backend released the request to have it again, or for good. Lock not held;
 * any thread. */
void sequences_again(struct request *r);
void sequences_ended(struct request *r);
