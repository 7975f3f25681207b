#include "batching/batch_match.h"

#include "base/mem.h"
#include "infer/request.h"
#include "model/shape.h"

#include <string.h>

void batch_match_init(struct batch_match *m, bool batched, const char *const *shape_tensors,
                      size_t count)
{
    *m = (struct batch_match){
        .batched = batched,
        .shape_tensors = mem_alloc(count * sizeof(char *)),
        .shape_tensor_count = count,
    };
    for (size_t i = 0; i < count; i++)
        m->shape_tensors[i] = mem_strdup(shape_tensors[i]);
}

void batch_match_fini(struct batch_match *m)
{
    for (size_t i = 0; i < m->shape_tensor_count; i++)
        mem_free(m->shape_tensors[i]);
    mem_free(m->shape_tensors);
}

static bool is_shape_tensor(const struct batch_match *m, const char *name)
{
    for (size_t i = 0; i < m->shape_tensor_count; i++)
        if (strcmp(name, m->shape_tensors[i]) == 0)
            return true;
    return false;
}

static bool contents_equal(const struct tensor_input *a, const struct tensor_input *b)
{
    if (a->byte_size != b->byte_size)
        return false;
    if (a->byte_size == 0)
        return true;
    if (a->piece_count != 1 || b->piece_count != 1)
        return false;
    const struct tensor_piece *p = &a->pieces[0];
    const struct tensor_piece *q = &b->pieces[0];
    if (p->memory == BUF_MEMORY_GPU || q->memory == BUF_MEMORY_GPU)
        return false;
    return memcmp(p->data, q->data, a->byte_size) == 0;
}

static bool shapes_equal(const struct tensor_input *a, const struct tensor_input *b, uint32_t skip)
{
    if (a->rank != b->rank)
        return false;
    if (a->rank <= skip)
        return true;
    return shape_equal(a->shape + skip, a->rank - skip, b->shape + skip, b->rank - skip);
}

/* The input of r with the name of `in`; usually it has the same index. */
static const struct tensor_input *batch_match_find(const struct request *r,
                                                   const struct tensor_input *in, uint32_t place)
{
    if (strcmp(r->inputs[place].name, in->name) == 0)
        return &r->inputs[place];
    for (uint32_t i = 0; i < r->input_count; i++)
        if (strcmp(r->inputs[i].name, in->name) == 0)
            return &r->inputs[i];
    return NULL;
}

bool batch_match_equal(const struct batch_match *m, const struct request *a,
                       const struct request *b)
{
    if (a->input_count != b->input_count)
        return false;
    for (uint32_t i = 0; i < a->input_count; i++) {
        const struct tensor_input *x = &a->inputs[i];
        const struct tensor_input *y = batch_match_find(b, x, i);
        if (!y)
            return false;
        if (is_shape_tensor(m, x->name)) {
            if (!shapes_equal(x, y, 0) || !contents_equal(x, y))
                return false;
        } else if (!x->ragged_ok && !shapes_equal(x, y, m->batched ? 1 : 0)) {
            return false;
        }
    }
    return true;
}
