#pragma once
/* Whether two requests may run in one batch. Pure. */
#include <stdbool.h>
#include <stddef.h>

struct request;

/* What a model asks of the requests of a batch. */
struct batch_match {
    bool batched;         /* shapes begin with the batch dimension */
    char **shape_tensors; /* names of inputs without one, whose contents must be equal too */
    size_t shape_tensor_count;
};

/* batch_match_init - copies the names. batch_match_fini - frees the copies. */
void batch_match_init(struct batch_match *m, bool batched, const char *const *shape_tensors,
                      size_t count);
void batch_match_fini(struct batch_match *m);

/* batch_match_equal - both give the same set of inputs, and each input that may not be ragged has
 * the same shape in both, apart from the batch dimension. Contents are compared where they lie in
 * one piece each in host memory, else they count as different. */
bool batch_match_equal(const struct batch_match *m, const struct request *a,
                       const struct request *b);
