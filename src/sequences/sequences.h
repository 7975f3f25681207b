#pragma once
/* Sequences in front of a stateful model: what its requests must say, the control inputs that
 * they get, the rows of a batch that no sequence fills, and iterative sequences, whose requests
 * the backend gives back to have them again. Which request runs when is the sequencer's to say
 * (sequences/sequencer.h).
 *
 * source  spec/model_config_proto.txt, ModelSequenceBatching; spec/sequence_extension.txt */
#include "base/err.h"
#include "base/list.h"
#include "os/clock.h"
#include "serve/features.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct model_config;
struct sequence_controls;
struct sequencer;
struct state_plan;

struct sequences {
    struct scheduler base;
    struct sequencer *queue;            /* owned; guarded by version->lock */
    struct sequence_controls *controls; /* owned; immutable */
    struct state_plan *states;          /* owned; immutable; NULL = the model has none */
    bool iterative;
    atomic_uint_fast64_t last_id; /* iterative: the correlation id that was given out last */
    /* Id of a sequence that began anew before it ended, not logged yet; guarded by
     * version->lock. */
    char conflict[80];
    /* Relaxed: conflict is set. */
    atomic_bool conflicts;
    /* Inputs of requests that fill a gap, largest last; guarded by version->lock. */
    struct list zeros;
};

/* sequences_new - NULL when the model has no sequence_batching. Blocks: reads the files that
 * states begin with.
 * model_dir  the model's directory
 * errors     of sequence_state_plan
 * sequences_free - no request is left; idle sequences are forgotten. NULL is fine. */
struct err *sequences_new(const struct model_config *config, const char *model_dir,
                          struct sequences **ret);
void sequences_free(struct sequences *s);

/* Schedules versions whose model has sequence_batching, and sets `again` and `ended` of their
 * target; checks the files that states begin with. errors of make, check as sequences_new */
extern const struct feature sequences_feature;
