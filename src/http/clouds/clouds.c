#include "http/clouds/clouds.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "codec/http1.h"
#include "http/api/http_api.h"
#include "http/http_shard.h"

#include <string.h>

#define MODELS "/v2/models/"

void clouds_target_init(struct clouds_target *t, const char *model, const char *action,
                        enum http_route_kind kind)
{
    struct strbuf text = STRBUF_INIT;
    strbuf_printf(&text, MODELS "%s/%s", model, action);
    t->text = strbuf_take(&text);
    t->route = (struct http_route){
        .kind = kind,
        .target = t->text,
        .model = {.at = sizeof(MODELS) - 1, .len = (uint32_t)strlen(model)},
    };
}

void clouds_target_fini(struct clouds_target *t)
{
    mem_free(t->text);
    *t = (struct clouds_target){0};
}

struct http_route_part clouds_path(const struct http1_head *head)
{
    const char *query = memchr(head->url, '?', head->url_len);
    size_t len = query ? (size_t)(query - head->url) : head->url_len;
    return (struct http_route_part){.at = 0, .len = (uint32_t)len};
}

bool clouds_path_is(const struct http1_head *head, const char *path)
{
    size_t len = strlen(path);
    return clouds_path(head).len == len && memcmp(head->url, path, len) == 0;
}

/* What follows the type of a body with binary data. */
static struct http1_value size_after(const char *text)
{
    struct http1_value v = {.given = true};
    size_t len = strlen(text);
    while (len && (text[len - 1] == ' ' || text[len - 1] == '\t'))
        len--;
    v.cut = len >= HTTP1_VALUE_BYTES;
    v.len = (uint8_t)(v.cut ? HTTP1_VALUE_BYTES - 1 : len);
    memcpy(v.text, text, v.len);
    return v;
}

void clouds_head(struct http1_head *head, const char *size_type)
{
    const char *type = http1_header(head, "Content-Type", NULL);
    size_t len = strlen(size_type);
    bool sized = type && strncmp(type, size_type, len) == 0;
    head->content_coding = CODING_IDENTITY;
    head->accept_coding = CODING_IDENTITY;
    head->tensor_header = sized ? size_after(type + len) : (struct http1_value){0};
}

static struct err *check_type(const struct http1_head *head, const char *size_type)
{
    const char *type = http1_header(head, "Content-Type", NULL);
    const char *found = type ? strstr(type, size_type) : NULL;
    if (!found || found == type)
        return NULL;
    return err_new(STATUS_INVALID_ARG, "expect MIME type for binary data starts with '%s', got: %s",
                   size_type, type);
}

struct err *clouds_admit(const struct http_front *f, const struct http1_head *head,
                         const struct http_route *route, uint64_t *ret_max)
{
    *ret_max = 0;
    if (route->kind >= HTTP_ROUTE_COUNT)
        return NULL;
    struct err *e =
        route->kind == HTTP_ROUTE_MODEL_INFER ? check_type(head, f->service->size_type) : NULL;
    return e ? e : http_api_service.admit(f, head, route, ret_max);
}
