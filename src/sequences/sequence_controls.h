#pragma once
/* The control inputs of a stateful model: START, END, READY and the correlation id. The server
 * adds them to each request as tensors, which the backend reads like other inputs. A control has
 * one element: shape [ 1 ], or [ 1, 1 ] for a model with batches.
 *
 * source  spec/model_config_proto.txt, ModelSequenceBatching.Control */
#include "infer/request.h"

struct model_config;
struct sequence_controls;

/* sequence_controls_new - for a checked configuration with sequence_batching; never NULL.
 * sequence_controls_free - free it; no request uses it any more. NULL is fine. */
struct sequence_controls *sequence_controls_new(const struct model_config *config);
void sequence_controls_free(struct sequence_controls *c);

/* sequence_controls_check - whether the model can read the correlation id of a request: a string
 * as TYPE_STRING, a number as a numeric type. All is well without a control that reads it.
 * model   its name, for errors
 * errors  INVALID_ARG */
struct err *sequence_controls_check(const struct sequence_controls *c, const struct request *r,
                                    const char *model);

/* sequence_controls_add - add the control inputs to a request that was prepared and not queued
 * yet. Their values follow from its flags and correlation id.
 * ready  false: the request only fills a gap in a batch, so flags and correlation id count as 0 */
void sequence_controls_add(const struct sequence_controls *c, struct request *r, bool ready);

/* sequence_controls_want_text - whether the model reads the correlation id as TYPE_STRING. */
bool sequence_controls_want_text(const struct sequence_controls *c);

/* sequence_controls_again - update the control inputs of a request that runs once more with
 * other flags. */
void sequence_controls_again(const struct sequence_controls *c, struct request *r);

/* sequence_controls_count - how many inputs sequence_controls_add adds. */
uint32_t sequence_controls_count(const struct sequence_controls *c);
