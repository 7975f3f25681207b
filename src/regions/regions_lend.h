#pragma once
/* Regions in requests: inputs that lie in one, outputs that go to one. A request holds what it was
 * lent until its memory goes; it uses it until it is answered. */
#include "base/err.h"
#include "regions/regions.h"

#include <stdbool.h>
#include <stdint.h>

struct request;
struct response;
struct tensor_piece;

/* What a request asks for: byte_size bytes of a region from an offset on. */
struct regions_part {
    struct regions_name region;
    uint64_t offset;
    uint64_t byte_size;
};

/* regions_lend_input - the bytes of an input, until the request is freed.
 * ret     where they lie, not aligned; of a region of CUDA's, on its GPU
 * errors  of regions_use */
struct err *regions_lend_input(struct regions *s, struct request *r, const struct regions_part *p,
                               struct tensor_piece *ret);

/* regions_lend_output - an output of this name is to be put there.
 * output  ends in NUL; of the request's arena
 * errors  of regions_use */
struct err *regions_lend_output(struct regions *s, struct request *r, const struct regions_part *p,
                                const char *output);

/* regions_lend_settle - a response came: where a region of its request was cut short it becomes an
 * error; with the final one the request uses its regions no longer. Before the client can see the
 * response: what it then unregisters is free. Cheap for a request without regions. */
void regions_lend_settle(struct response *r);
