#include "cache/cache_key.h"

#include "infer/request.h"

#include <stdlib.h>
#include <string.h>

/* Adds a number. Every part of a key begins with its length, so that different lists of parts
 * never give the same bytes. */
static void cache_key_put_number(struct cache_key_hash *h, uint64_t n)
{
    cache_key_hash_add(h, &n, sizeof(n));
}

static void put_bytes(struct cache_key_hash *h, const void *data, size_t len)
{
    cache_key_put_number(h, len);
    cache_key_hash_add(h, data, len);
}

static void cache_key_put_text(struct cache_key_hash *h, const char *text)
{
    put_bytes(h, text, strlen(text));
}

void cache_key_model_init(struct cache_key_model *m, const char *name, int64_t version,
                          const void *config, size_t config_bytes, const char *files)
{
    struct cache_key_hash h;
    cache_key_hash_init(&h);
    cache_key_put_text(&h, name);
    cache_key_put_number(&h, (uint64_t)version);
    put_bytes(&h, config, config_bytes);
    cache_key_put_text(&h, files);
    cache_key_hash_end(&h, m->seed);
}

void cache_key_model_at(const struct cache_key_model *m, uint64_t time, struct cache_key_model *ret)
{
    struct cache_key_hash h;
    cache_key_hash_init(&h);
    cache_key_hash_add(&h, m->seed, sizeof(m->seed));
    cache_key_put_number(&h, time);
    cache_key_hash_end(&h, ret->seed);
}

static int by_input(const void *a, const void *b)
{
    const struct tensor_input *const *x = a;
    const struct tensor_input *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

static int by_text(const void *a, const void *b)
{
    const char *const *x = a;
    const char *const *y = b;
    return strcmp(*x, *y);
}

struct ordered {
    const struct param *param;
    uint32_t at; /* order of arrival: if two have one name, the later one counts */
};

static int by_param(const void *a, const void *b)
{
    const struct ordered *x = a;
    const struct ordered *y = b;
    int order = strcmp(x->param->name, y->param->name);
    return order ? order : (x->at > y->at) - (x->at < y->at);
}

static void cache_key_put_param(struct cache_key_hash *h, const struct param *p)
{
    uint64_t bits = 0;
    cache_key_put_text(h, p->name);
    cache_key_put_number(h, p->type);
    switch (p->type) {
    case PARAM_STRING:
    case PARAM_BYTES:
        put_bytes(h, p->bytes.data, p->bytes.len);
        break;
    case PARAM_INT:
        cache_key_put_number(h, (uint64_t)p->i);
        break;
    case PARAM_BOOL:
        cache_key_put_number(h, p->b);
        break;
    case PARAM_DOUBLE:
        memcpy(&bits, &p->d, sizeof(bits));
        cache_key_put_number(h, bits);
        break;
    }
}

static void cache_key_put_params(struct cache_key_hash *h, struct request *r)
{
    cache_key_put_number(h, r->params.count);
    if (!r->params.count)
        return;
    struct ordered *all = arena_alloc(&r->arena, r->params.count * sizeof(*all));
    uint32_t count = 0;
    for (const struct param *p = r->params.first; p; p = p->next, count++)
        all[count] = (struct ordered){p, count};
    qsort(all, count, sizeof(*all), by_param);
    for (uint32_t i = 0; i < count; i++)
        cache_key_put_param(h, all[i].param);
}

static void cache_key_put_outputs(struct cache_key_hash *h, struct request *r)
{
    cache_key_put_number(h, r->output_count);
    if (!r->output_count)
        return;
    const char **names = arena_alloc(&r->arena, r->output_count * sizeof(*names));
    memcpy(names, r->outputs, r->output_count * sizeof(*names));
    qsort(names, r->output_count, sizeof(*names), by_text);
    for (uint32_t i = 0; i < r->output_count; i++)
        cache_key_put_text(h, names[i]);
}

static bool put_pieces(struct cache_key_hash *h, const struct tensor_piece *pieces, uint32_t count,
                       uint64_t byte_size)
{
    cache_key_put_number(h, byte_size);
    for (uint32_t i = 0; i < count; i++) {
        if (pieces[i].memory == BUF_MEMORY_GPU)
            return false;
        cache_key_hash_add(h, pieces[i].data, pieces[i].size);
    }
    return true;
}

static bool put_input(struct cache_key_hash *h, const struct tensor_input *in)
{
    cache_key_put_text(h, in->name);
    cache_key_put_number(h, in->datatype);
    put_bytes(h, in->shape, in->rank * sizeof(*in->shape));
    bool ok = put_pieces(h, in->pieces, in->piece_count, in->byte_size);
    for (const struct tensor_policy *p = in->policies; p && ok; p = p->next) {
        cache_key_put_number(h, 1);
        cache_key_put_text(h, p->name);
        ok = put_pieces(h, p->pieces, p->piece_count, p->byte_size);
    }
    cache_key_put_number(h, 0);
    return ok;
}

static bool cache_key_put_inputs(struct cache_key_hash *h, struct request *r)
{
    cache_key_put_number(h, r->input_count);
    if (!r->input_count)
        return true;
    const struct tensor_input **all =
        arena_alloc(&r->arena, r->input_count * sizeof(const struct tensor_input *));
    for (uint32_t i = 0; i < r->input_count; i++)
        all[i] = &r->inputs[i];
    qsort(all, r->input_count, sizeof(const struct tensor_input *), by_input);
    bool ok = true;
    for (uint32_t i = 0; ok && i < r->input_count; i++)
        ok = put_input(h, all[i]);
    return ok;
}

bool cache_key_make(const struct cache_key_model *m, struct request *r,
                    char ret[CACHE_KEY_TEXT + 1])
{
    static const char digits[] = "0123456789abcdef";
    struct cache_key_hash h;
    uint8_t key[CACHE_KEY_HASH_BYTES];
    cache_key_hash_init(&h);
    cache_key_hash_add(&h, m->seed, sizeof(m->seed));
    cache_key_put_number(&h, r->flags);
    cache_key_put_number(&h, r->correlation_id);
    cache_key_put_number(&h, r->correlation_string != NULL);
    if (r->correlation_string)
        cache_key_put_text(&h, r->correlation_string);
    cache_key_put_params(&h, r);
    cache_key_put_outputs(&h, r);
    if (!cache_key_put_inputs(&h, r))
        return false;
    cache_key_hash_end(&h, key);
    for (size_t i = 0; i < sizeof(key); i++) {
        ret[2 * i] = digits[key[i] >> 4];
        ret[2 * i + 1] = digits[key[i] & 15];
    }
    ret[CACHE_KEY_TEXT] = '\0';
    return true;
}
