#pragma once
/* Decides whether two requests may run in one batch. Pure. */
#include <stdbool.h>
#include <stddef.h>

struct request;

/* What the requests of a batch must have in common. */
struct batch_match {
    bool batched; /* shapes begin with the batch dimension */
    /* names of inputs without a batch dimension, whose contents must be equal */
    char **shape_tensors;
    size_t shape_tensor_count;
};

/* batch_match_init - copies the names.
 * batch_match_fini - frees the copies. */
void batch_match_init(struct batch_match *m, bool batched, const char *const *shape_tensors,
                      size_t count);
void batch_match_fini(struct batch_match *m);

/* batch_match_equal - true if both requests have the same inputs, and each input that may not be
 * ragged has the same shape in both, apart from the batch dimension. Contents are compared only
 * if both lie in one piece in host memory; otherwise they count as different. */
bool batch_match_equal(const struct batch_match *m, const struct request *a,
                       const struct request *b);
