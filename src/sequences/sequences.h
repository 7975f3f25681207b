#pragma once
/* The scheduler of stateful models. It checks what requests of sequences must say, adds the
 * control inputs, fills rows of a batch that no sequence fills, and runs iterative sequences,
 * whose requests the backend gives back to execute them again. The sequencer decides which
 * request runs when (sequences/sequencer.h).
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
    atomic_uint_fast64_t ids_made; /* iterative: for requests that have none */
    /* The id of a sequence that started again before it ended and is not logged yet; guarded by
     * version->lock. */
    char conflict[80];
    /* Relaxed: true if conflict is set. */
    atomic_bool conflicts;
    /* Zeroed bytes for the inputs of requests that fill a gap, largest last; guarded by
     * version->lock. */
    struct list zeros;
};

/* sequences_new - NULL if the model has no sequence_batching. Blocks: reads the files of initial
 * states.
 * model_dir  the model's directory
 * errors     those of sequence_state_plan
 * sequences_free - free it; no request is left, idle sequences are forgotten. NULL is fine. */
struct err *sequences_new(const struct model_config *config, const char *model_dir,
                          struct sequences **ret);
void sequences_free(struct sequences *s);

/* The scheduler of versions with sequence_batching. It sets `again` and `ended` of their target,
 * and checks the files of initial states. Errors of make and check: as sequences_new. */
extern const struct feature sequences_feature;
