#pragma once
/* The control inputs of a stateful model: START, END, READY and the correlation id, as tensors
 * that its backend reads like any other input. A control is one element of a request: shape [ 1
 * ], or [ 1, 1 ] for a model with batches.
 *
 * source  spec/model_config_proto.txt, ModelSequenceBatching.Control */
#include "infer/request.h"

struct model_config;
struct sequence_controls;

/* sequence_controls_new - of a checked configuration with sequence_batching; never NULL.
 * sequence_controls_free - NULL is fine; no request that has them is left. */
struct sequence_controls *sequence_controls_new(const struct model_config *config);
void sequence_controls_free(struct sequence_controls *c);

/* sequence_controls_add - add them to a request that was prepared and not queued yet, by its
 * flags and correlation id.
 * ready  false: the request only fills a gap in a batch; flags and correlation id count as 0 */
void sequence_controls_add(const struct sequence_controls *c, struct request *r, bool ready);

/* sequence_controls_again - the request, which has them, runs once more: its flags are others
 * now. */
void sequence_controls_again(const struct sequence_controls *c, struct request *r);

/* sequence_controls_count - how many inputs sequence_controls_add adds. */
uint32_t sequence_controls_count(const struct sequence_controls *c);
