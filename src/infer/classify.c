#include "infer/classify.h"

#include "infer/response.h"
#include "model/labels.h"
#include "model/shape.h"
#include "os/pool.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ELEMENTS 1000000u
/* The longest string without its label: "%f" of the largest double takes 317 bytes; add the
 * index, the colons and the length. */
#define MAX_TEXT 352u

/* A value and its index. Floating point values are compared by `real`, integers by `whole`. */
struct candidate {
    double real;
    int64_t whole; /* integers: for order and text; unsigned ones have their top bit inverted */
    uint64_t index;
};

enum order { ORDER_NONE, ORDER_SIGNED, ORDER_UNSIGNED, ORDER_REAL };

static enum order classify_order(enum datatype t)
{
    switch (t) {
    case DATATYPE_UINT8:
    case DATATYPE_UINT16:
    case DATATYPE_UINT32:
    case DATATYPE_UINT64:
        return ORDER_UNSIGNED;
    case DATATYPE_INT8:
    case DATATYPE_INT16:
    case DATATYPE_INT32:
    case DATATYPE_INT64:
        return ORDER_SIGNED;
    case DATATYPE_FP32:
    case DATATYPE_FP64:
        return ORDER_REAL;
    case DATATYPE_BOOL:
    case DATATYPE_FP16:
    case DATATYPE_BF16:
    case DATATYPE_BYTES:
    case DATATYPE_INVALID:
    case DATATYPE_COUNT:
        break;
    }
    return ORDER_NONE;
}

static struct candidate classify_load(const char *from, enum order order, uint32_t width,
                                      uint64_t index)
{
    struct candidate c = {.index = index};
    uint64_t bits = 0;
    memcpy(&bits, from, width);
    if (order == ORDER_UNSIGNED) {
        c.whole = (int64_t)(bits ^ ((uint64_t)1 << 63));
    } else if (order == ORDER_SIGNED) {
        unsigned unused = 64 - 8 * width;
        c.whole = (int64_t)(bits << unused) >> unused;
    } else if (width == 4) {
        float f;
        memcpy(&f, from, sizeof(f));
        c.real = (double)f;
    } else {
        memcpy(&c.real, from, sizeof(c.real));
    }
    return c;
}

/* Compares for descending order: equal values by index; NaN after all other values. */
static int classify_compare(const void *a, const void *b)
{
    const struct candidate *l = a, *r = b;
    bool l_nan = l->real != l->real, r_nan = r->real != r->real;
    if (l_nan != r_nan)
        return l_nan ? 1 : -1;
    if (!l_nan && l->real != r->real)
        return l->real > r->real ? -1 : 1;
    if (l->whole != r->whole)
        return l->whole > r->whole ? -1 : 1;
    return l->index < r->index ? -1 : l->index > r->index;
}

static char *classify_put(char *to, const struct candidate *c, enum order order, const char *label)
{
    char *text = to + sizeof(uint32_t);
    int len;
    if (order == ORDER_REAL)
        len = snprintf(text, MAX_TEXT - sizeof(uint32_t), "%f:%" PRIu64, c->real, c->index);
    else if (order == ORDER_SIGNED)
        len =
            snprintf(text, MAX_TEXT - sizeof(uint32_t), "%" PRId64 ":%" PRIu64, c->whole, c->index);
    else
        len = snprintf(text, MAX_TEXT - sizeof(uint32_t), "%" PRIu64 ":%" PRIu64,
                       (uint64_t)c->whole ^ ((uint64_t)1 << 63), c->index);
    size_t label_len = label ? strlen(label) : 0;
    if (label) {
        text[len++] = ':';
        memcpy(text + len, label, label_len);
    }
    uint32_t prefix = (uint32_t)((size_t)len + label_len);
    memcpy(to, &prefix, sizeof(prefix));
    return text + prefix;
}

struct job {
    const char *from;
    enum order order;
    uint32_t width;
    uint64_t rows;
    uint64_t row_elements;
    uint64_t kept; /* classes per row */
    const struct labels *labels;
    struct candidate *candidates;
};

static const char *label_of(const struct job *j, uint64_t index)
{
    return j->labels ? labels_get(j->labels, index) : NULL;
}

/* Writes the classes of all rows. */
static char *classify_rows(const struct job *j, char *to)
{
    for (uint64_t row = 0; j->row_elements && row < j->rows; row++) {
        const char *from = j->from + row * j->row_elements * j->width;
        for (uint64_t i = 0; i < j->row_elements; i++)
            j->candidates[i] = classify_load(from + i * j->width, j->order, j->width, i);
        qsort(j->candidates, j->row_elements, sizeof(*j->candidates), classify_compare);
        for (uint64_t i = 0; i < j->kept; i++)
            to = classify_put(to, &j->candidates[i], j->order, label_of(j, j->candidates[i].index));
    }
    return to;
}

/* The most bytes that labels can add to a row: every kept class is assumed to have the longest
 * label. */
static size_t label_bytes(const struct job *j)
{
    size_t longest = 0;
    for (uint64_t i = 0; i < j->row_elements; i++) {
        const char *label = label_of(j, i);
        size_t len = label ? strlen(label) : 0;
        longest = len > longest ? len : longest;
    }
    return longest;
}

static struct err *classify_run(struct tensor_output *o, struct job *j, char **ret_text,
                                char **ret_end)
{
    struct buf *scratch = NULL, *text = NULL;
    struct err *e = pool_buf((size_t)j->row_elements * sizeof(struct candidate) + 1, &scratch);
    if (!e)
        e = pool_buf((size_t)(j->rows * j->kept) * (MAX_TEXT + label_bytes(j)) + 1, &text);
    if (!e) {
        j->candidates = (struct candidate *)(void *)scratch->data;
        *ret_text = (char *)text->data;
        *ret_end = classify_rows(j, *ret_text);
        buf_unref(o->buf);
        o->buf = text;
    }
    buf_unref(scratch);
    return e;
}

struct err *classify_output(struct response *r, struct tensor_output *o, uint64_t classes,
                            bool batched, const struct labels *labels)
{
    enum order order = classify_order(o->datatype);
    if (order == ORDER_NONE)
        return err_new(STATUS_INVALID_ARG,
                       "class result not available for output due to unsupported type '%s'",
                       datatype_name(o->datatype));
    bool rows_first = batched && o->rank > 0;
    uint64_t elements;
    struct job j = {.from = o->data,
                    .order = order,
                    .width = datatype_bytes(o->datatype),
                    .rows = 1,
                    .labels = labels};
    if (!shape_elements(o->shape, o->rank, &elements) ||
        !shape_elements(o->shape + rows_first, o->rank - rows_first, &j.row_elements) ||
        o->byte_size != elements * j.width)
        return err_new(STATUS_INTERNAL,
                       "output tensor shape does not match size of output for '%s'", o->name);
    if (elements > MAX_ELEMENTS)
        return err_new(STATUS_INVALID_ARG, "classification output tensor too large");
    if (rows_first)
        j.rows = (uint64_t)o->shape[0];
    j.kept = classes < j.row_elements ? classes : j.row_elements;
    /* No rows of many elements, or many rows without any: more than a loop could ever count. */
    if (!elements)
        j.row_elements = 0;
    char *text, *end;
    struct err *e = classify_run(o, &j, &text, &end);
    if (e)
        return e;
    int64_t *shape = arena_alloc(&r->arena, 2 * sizeof(*shape));
    o->shape = shape;
    o->rank = rows_first ? 2 : 1;
    if (rows_first)
        *shape++ = (int64_t)j.rows;
    *shape = (int64_t)j.kept;
    o->datatype = DATATYPE_BYTES;
    o->data = text;
    o->byte_size = (uint64_t)(end - text);
    return NULL;
}
