#include "http/openai/openai_json.h"

#include "base/budget.h"
#include "base/mem.h"

#include <string.h>

#define JSON_ALIGN 16u

/* Where the writer takes memory: each piece is charged. */
struct json_memory {
    size_t most;
    size_t charged;
    bool spent; /* the budget had no room */
};

static void *json_take(void *own, size_t n)
{
    struct json_memory *m = own;
    if (n > m->most)
        return NULL;
    if (!budget_charge(n)) {
        m->spent = true;
        return NULL;
    }
    m->charged += n;
    return mem_try_alloc(n, JSON_ALIGN);
}

static void json_give(void *own, void *p)
{
    (void)own; /* what is charged is given back at the end */
    mem_free(p);
}

static void *json_grow(void *own, void *p, size_t was, size_t n)
{
    struct json_memory *m = own;
    if (n <= was)
        return p;
    char *to = json_take(own, n);
    if (!to)
        return NULL;
    memcpy(to, p, was);
    mem_free(p);
    budget_release(was);
    m->charged -= was;
    return to;
}

struct err *openai_json_write(yyjson_val *v, size_t most, struct openai_json *ret)
{
    struct json_memory m = {.most = most};
    const yyjson_alc alc = {json_take, json_grow, json_give, &m};
    yyjson_write_err why = {0};
    size_t len = 0;
    char *text = yyjson_val_write_opts(v, YYJSON_WRITE_NOFLAG, &alc, &len, &why);
    if (text) {
        *ret = (struct openai_json){text, len, m.charged};
        return NULL;
    }
    budget_release(m.charged);
    if (m.spent)
        return budget_busy(m.most, "no room for a part of the request as text");
    if (why.code == YYJSON_WRITE_ERROR_MEMORY_ALLOCATION)
        return err_new(STATUS_INVALID_ARG, "expected at most %zu bytes of text", most);
    return err_new(STATUS_INVALID_ARG, "expected text and numbers of JSON: %s", why.msg);
}

void openai_json_end(struct openai_json *j)
{
    budget_release(j->charged);
    mem_free(j->text);
    *j = (struct openai_json){0};
}
