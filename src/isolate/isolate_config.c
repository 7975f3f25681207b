#include "isolate/isolate_config.h"

#include "proto/model_config.pb-c.h"

#include <stdbool.h>

#define MOST 65536 /* limits values that the server allocates memory for */

/* Swaps two values, so that each message still frees what it owns. */
#define SWAP(a, b)                 \
    do {                           \
        __typeof__(a) both_ = (a); \
        (a) = (b);                 \
        (b) = both_;               \
    } while (0)

static struct err *isolate_config_check(const Inference__ModelConfig *to,
                                        const Inference__ModelConfig *from, bool written)
{
    if (from->max_batch_size > MOST && from->max_batch_size != to->max_batch_size)
        return err_new(STATUS_INVALID_ARG,
                       "its process completes 'max_batch_size' with %d; more than %d are taken "
                       "from config.pbtxt only",
                       from->max_batch_size, MOST);
    if (written)
        return NULL;
    if (from->scheduling_choice_case ==
        INFERENCE__MODEL_CONFIG__SCHEDULING_CHOICE_ENSEMBLE_SCHEDULING)
        return err_new(STATUS_UNSUPPORTED,
                       "its process completes 'ensemble_scheduling', which a model with ISOLATION "
                       "cannot have");
    if (from->scheduling_choice_case !=
        INFERENCE__MODEL_CONFIG__SCHEDULING_CHOICE_SEQUENCE_BATCHING)
        return NULL;
    const Inference__ModelSequenceBatching *s = from->sequence_batching;
    bool oldest =
        s->strategy_choice_case == INFERENCE__MODEL_SEQUENCE_BATCHING__STRATEGY_CHOICE_OLDEST;
    if (s->n_state)
        return err_new(STATUS_UNSUPPORTED,
                       "its process completes 'sequence_batching.state', which is not kept for a "
                       "model with ISOLATION");
    if (oldest && s->oldest->max_candidate_sequences > MOST)
        return err_new(STATUS_INVALID_ARG,
                       "its process completes 'max_candidate_sequences' with %d; more than %d are "
                       "taken from config.pbtxt only",
                       s->oldest->max_candidate_sequences, MOST);
    return NULL;
}

struct err *isolate_config_take(Inference__ModelConfig *to, Inference__ModelConfig *from)
{
    bool written =
        to->scheduling_choice_case != INFERENCE__MODEL_CONFIG__SCHEDULING_CHOICE__NOT_SET;
    struct err *e = isolate_config_check(to, from, written);
    if (e)
        return e;
    to->max_batch_size = from->max_batch_size;
    SWAP(to->n_input, from->n_input);
    SWAP(to->input, from->input);
    SWAP(to->n_output, from->n_output);
    SWAP(to->output, from->output);
    SWAP(to->model_transaction_policy, from->model_transaction_policy);
    if (!written) {
        SWAP(to->scheduling_choice_case, from->scheduling_choice_case);
        /* the member of a union; this swaps all of them */
        SWAP(to->dynamic_batching, from->dynamic_batching);
    }
    return NULL;
}
