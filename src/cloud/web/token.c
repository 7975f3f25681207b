#include "cloud/web/token.h"

#include "base/mem.h"
#include "cloud/web/lease.h"

#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

void *token_copy(const void *value)
{
    return value ? mem_strdup(value) : NULL;
}

struct err *token_read(const char *json, struct lease_fresh *ret)
{
    yyjson_doc *doc = yyjson_read(json, strlen(json), 0);
    yyjson_val *root = yyjson_doc_get_root(doc);
    const char *text = yyjson_get_str(yyjson_obj_get(root, "access_token"));
    yyjson_val *secs = yyjson_obj_get(root, "expires_in"); /* a number, or a number in quotes */
    struct err *e = NULL;
    if (text && *text) {
        uint64_t n =
            yyjson_is_str(secs) ? strtoull(yyjson_get_str(secs), NULL, 10) : yyjson_get_uint(secs);
        ret->value = mem_strdup(text);
        ret->life = TIME_S(n < 10 ? 10 : n > 86400 ? 86400 : n);
    } else {
        e = err_new(STATUS_UNAVAILABLE, "the endpoint for tokens answers without one");
    }
    yyjson_doc_free(doc);
    return e;
}
