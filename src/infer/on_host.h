#pragma once
/* Inputs that lie on a GPU, brought to the memory of the host for those who can only reach that.
 * The copies are charged to the budget. Each function blocks until the copy has ended. */
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct gpu_copy_place;
struct request;
struct tensor_input;
struct tensor_piece;

/* on_host_place_of - a piece as one end of a copy. */
struct gpu_copy_place on_host_place_of(const struct tensor_piece *p);

/* on_host_is - true if every byte of an input is in host memory. */
bool on_host_is(const struct tensor_input *in);

/* on_host_piece - bring a buffer of an input, or of a policy of it, to the host: from now on it
 * lies there. The thread that has the request.
 * pieces  in->pieces or the pieces of a policy
 * errors  UNAVAILABLE if the budget is spent; those of gpu_copy */
struct err *on_host_piece(struct tensor_input *in, const struct tensor_piece *pieces,
                          uint32_t index);

/* on_host_inputs - bring all inputs of a request to the host. */
struct err *on_host_inputs(struct request *r);

/* on_host_copy - copy an input to `to`, in host memory, wherever its buffers lie. */
struct err *on_host_copy(const struct tensor_input *in, void *to);
