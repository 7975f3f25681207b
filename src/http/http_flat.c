#include "http/http_flat.h"

#include "codec/json_out.h"
#include "codec/json_tensor.h"
#include "infer/request.h"
#include "infer/response.h"
#include "http/http_answer.h"
#include "model/shape.h"
#include "model/tensor_json.h"
#include "serve/version.h"

#include <stdlib.h>
#include <string.h>

/* Of two members of one name the one that comes first here is told. */
enum member_kind {
    MEMBER_ID,
    MEMBER_MODEL,
    MEMBER_VERSION,
    MEMBER_PARAM,
    MEMBER_OUTPUT,
};

struct member {
    const char *name;
    enum member_kind kind;
    uint32_t at; /* place in the response */
    union {
        const struct param *param;
        const struct tensor_output *output;
    };
};

struct http_flat {
    uint32_t count;
    struct member members[];
};

#define OWN_MEMBERS   3u
#define MEMBERS_BYTES 128u /* their names and what is around them, a number */
#define FEW           16u  /* are put in order by hand */

static int compare_members(const void *a, const void *b)
{
    const struct member *x = a, *y = b;
    int by_name = strcmp(x->name, y->name);
    if (by_name)
        return by_name;
    return x->kind != y->kind ? (x->kind < y->kind ? -1 : 1) : (x->at < y->at ? -1 : 1);
}

static void sort_members(struct member *m, uint32_t count)
{
    if (count > FEW) {
        qsort(m, count, sizeof(*m), compare_members);
        return;
    }
    for (uint32_t i = 1; i < count; i++) {
        struct member each = m[i];
        uint32_t to = i;
        for (; to && compare_members(&each, &m[to - 1]) < 0; to--)
            m[to] = m[to - 1];
        m[to] = each;
    }
}

/* Sorted: of each name the first stays. */
static uint32_t drop_twins(struct member *m, uint32_t count)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++)
        if (!kept || strcmp(m[kept - 1].name, m[i].name) != 0)
            m[kept++] = m[i];
    return kept;
}

/* What id, name, version, parameters and all names take, and braces. */
static size_t plain_room(const struct response *r)
{
    size_t sum = MEMBERS_BYTES + json_out_string_bytes(strlen(r->request->id)) +
                 json_out_string_bytes(strlen(version_of(r->request)->name));
    for (const struct param *p = r->params.first; p; p = p->next)
        sum += json_out_string_bytes(strlen(p->name)) + JSON_OUT_NUMBER_BYTES +
               (p->type == PARAM_STRING ? json_out_string_bytes(p->bytes.len) : 0);
    for (const struct tensor_output *o = r->outputs; o; o = o->next)
        sum += json_out_string_bytes(strlen(o->name)) + JSON_OUT_NUMBER_BYTES;
    return sum;
}

static struct err *check_response(struct response *r, size_t *room)
{
    struct err *e = r->error;
    r->error = NULL;
    for (const struct param *p = r->params.first; !e && p; p = p->next)
        if (p->type == PARAM_BYTES)
            e = err_new(STATUS_UNSUPPORTED,
                        "Response parameter '%s' has type 'TRITONSERVER_PARAMETER_BYTES' which is "
                        "not currently supported",
                        p->name);
    for (const struct tensor_output *o = r->outputs; !e && o; o = o->next)
        e = http_answer_check_json(o, room);
    return e;
}

struct err *http_flat_prepare(struct response *r, const struct http_flat **ret, size_t *room)
{
    *room = plain_room(r);
    struct err *e = check_response(r, room);
    if (e)
        return e;
    size_t most = OWN_MEMBERS + r->params.count + r->output_count;
    struct http_flat *flat =
        arena_try_alloc(&r->arena, sizeof(*flat) + most * sizeof(*flat->members), 8);
    if (!flat)
        return err_busy("no memory for a response of %u outputs", r->output_count);
    struct member *m = flat->members;
    if (*r->request->id)
        *m++ = (struct member){.name = "id", .kind = MEMBER_ID};
    *m++ = (struct member){.name = "model_name", .kind = MEMBER_MODEL};
    *m++ = (struct member){.name = "model_version", .kind = MEMBER_VERSION};
    uint32_t at = 0;
    for (const struct param *p = r->params.first; p; p = p->next)
        *m++ = (struct member){.name = p->name, .kind = MEMBER_PARAM, .at = at++, .param = p};
    for (const struct tensor_output *o = r->outputs; o; o = o->next)
        *m++ = (struct member){.name = o->name, .kind = MEMBER_OUTPUT, .at = at++, .output = o};
    flat->count = (uint32_t)(m - flat->members);
    sort_members(flat->members, flat->count);
    flat->count = drop_twins(flat->members, flat->count);
    *ret = flat;
    return NULL;
}

static char *put_output(char *to, const struct tensor_output *o)
{
    struct json_tensor_type type = {JSON_TENSOR_BOOL, 1, false};
    uint64_t elements = 0;
    tensor_json_type(o->datatype, &type);
    shape_elements(o->shape, o->rank, &elements);
    /* http_answer_check_json saw that it fits; what changes nevertheless is told as null. */
    char *end = json_tensor_write(to, type, elements, o->data, o->byte_size);
    if (!end)
        return JSON_OUT_LITERAL(to, "null");
    if (elements != 1)
        return end;
    memmove(to, to + 1, (size_t)(end - to) - 2); /* without the brackets */
    return end - 2;
}

static char *put_member(char *to, const struct response *r, const struct member *m)
{
    const struct serve_version *v = version_of(r->request);
    switch (m->kind) {
    case MEMBER_ID:
        return json_out_string(to, r->request->id, strlen(r->request->id));
    case MEMBER_MODEL:
        return json_out_string(to, v->name, strlen(v->name));
    case MEMBER_VERSION:
        *to++ = '"';
        to = json_out_int(to, v->number);
        *to++ = '"';
        return to;
    case MEMBER_PARAM:
        return http_answer_put_param(to, m->param);
    case MEMBER_OUTPUT:
        return put_output(to, m->output);
    }
    return to;
}

char *http_flat_write(char *to, const struct response *r, const struct http_flat *flat)
{
    *to++ = '{';
    for (uint32_t i = 0; i < flat->count; i++) {
        const struct member *m = &flat->members[i];
        if (i)
            *to++ = ',';
        to = json_out_string(to, m->name, strlen(m->name));
        *to++ = ':';
        to = put_member(to, r, m);
    }
    *to++ = '}';
    return to;
}
