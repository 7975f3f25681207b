#pragma once
/* Requests for tests of the scheduler: only what it looks at, without model and front end. */
#include "infer/request.h"

/* fake_request_new - rows as batch_size, no inputs, everything else as request_new leaves it. */
struct request *fake_request_new(uint32_t rows);

/* fake_request_input - add an input; shape and bytes are copied. Returns it, valid until the
 * next call. */
struct tensor_input *fake_request_input(struct request *r, const char *name, const int64_t *shape,
                                        uint32_t rank, const void *bytes, size_t size);
void fake_request_free(struct request *r);
