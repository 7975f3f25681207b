#include "support/fake_request.h"

#include "base/mem.h"

#include <string.h>

#define MAX_INPUTS 8u

/* The target of a backend without promises. */
static struct request_target target;

struct request *fake_request_new(uint32_t rows)
{
    struct request *r = MEM_NEW(struct request);
    r->batch_size = rows;
    r->target = &target;
    r->queue_deadline = TIME_NEVER;
    list_init(&r->queue_node);
    arena_init(&r->arena, NULL, 0);
    r->inputs = arena_zalloc(&r->arena, MAX_INPUTS * sizeof(*r->inputs));
    r->input_cap = MAX_INPUTS;
    return r;
}

struct tensor_input *fake_request_input(struct request *r, const char *name, const int64_t *shape,
                                        uint32_t rank, const void *bytes, size_t size)
{
    struct tensor_input *in = &r->inputs[r->input_count++];
    int64_t *dims = arena_alloc(&r->arena, (rank + 1) * sizeof(*dims));
    struct tensor_piece *piece = arena_zalloc(&r->arena, sizeof(*piece));
    void *data = arena_alloc(&r->arena, size + 1);
    memcpy(dims, shape, rank * sizeof(*dims));
    if (size)
        memcpy(data, bytes, size);
    *piece = (struct tensor_piece){.data = data, .size = size};
    *in = (struct tensor_input){
        .name = arena_strndup(&r->arena, name, strlen(name)),
        .datatype = DATATYPE_FP32,
        .shape = dims,
        .rank = rank,
        .byte_size = size,
        .pieces = piece,
        .piece_count = 1,
    };
    return in;
}

void fake_request_free(struct request *r)
{
    if (!r)
        return;
    arena_fini(&r->arena);
    mem_free(r);
}
