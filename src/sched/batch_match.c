#include "sched/batch_match.h"

#include "infer/request.h"
#include "model/shape.h"

#include <string.h>

static bool is_named(const char *name, char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(name, names[i]) == 0)
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

/* The input of r called like `in`; nearly always the one at the same place. */
static const struct tensor_input *find(const struct request *r, const struct tensor_input *in,
                                       uint32_t place)
{
    if (strcmp(r->inputs[place].name, in->name) == 0)
        return &r->inputs[place];
    for (uint32_t i = 0; i < r->input_count; i++)
        if (strcmp(r->inputs[i].name, in->name) == 0)
            return &r->inputs[i];
    return NULL;
}

bool batch_match_equal(const struct request *a, const struct request *b, bool batched,
                       char *const *shape_tensors, size_t count)
{
    if (a->input_count != b->input_count)
        return false;
    for (uint32_t i = 0; i < a->input_count; i++) {
        const struct tensor_input *x = &a->inputs[i];
        const struct tensor_input *y = find(b, x, i);
        if (!y)
            return false;
        bool by_content = count != 0 && is_named(x->name, shape_tensors, count);
        if (by_content) {
            if (!shapes_equal(x, y, 0) || !contents_equal(x, y))
                return false;
        } else if (!x->ragged_ok && !shapes_equal(x, y, batched ? 1 : 0)) {
            return false;
        }
    }
    return true;
}
