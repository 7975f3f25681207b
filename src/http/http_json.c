#include "http/http_json.h"

#include "base/mem.h"
#include "http/http_exchange.h"
#include "http/http_front_priv.h"
#include "os/pool.h"

#include <string.h>

#define SHARD_BYTES ((size_t)64 << 10)

#define MARK "\xef\xbb\xbf" /* UTF-8, as some editors write it in front */

_Static_assert(HTTP_BODY_PADDING >= YYJSON_PADDING_SIZE, "the parser writes behind the text");

struct err *http_json_parse(struct http_shard *s, char *text, size_t len, struct http_json *ret)
{
    /* As the reference: NaN and infinities by name, and strings that need not be UTF-8. */
    const yyjson_read_flag flags =
        YYJSON_READ_INSITU | YYJSON_READ_ALLOW_INF_AND_NAN | YYJSON_READ_ALLOW_INVALID_UNICODE;
    if (len >= sizeof(MARK) - 1 && memcmp(text, MARK, sizeof(MARK) - 1) == 0) {
        text += sizeof(MARK) - 1;
        len -= sizeof(MARK) - 1;
    }
    size_t need = yyjson_read_max_memory_usage(len, flags);
    struct http_json j = {0};
    yyjson_alc alc;
    if (need <= SHARD_BYTES) {
        if (!s->json_memory)
            s->json_memory = mem_alloc(SHARD_BYTES);
        yyjson_alc_pool_init(&alc, s->json_memory, SHARD_BYTES);
    } else {
        struct err *e = pool_buf(need, &j.memory);
        if (e)
            return e;
        yyjson_alc_pool_init(&alc, j.memory->data, need);
    }
    char behind[YYJSON_PADDING_SIZE];
    memcpy(behind, text + len, sizeof(behind));
    memset(text + len, 0, sizeof(behind));
    yyjson_read_err why = {0};
    j.doc = yyjson_read_opts(text, len, flags, &alc, &why);
    memcpy(text + len, behind, sizeof(behind));
    if (!j.doc) {
        buf_unref(j.memory);
        return err_new(STATUS_INTERNAL, "failed to parse the request JSON buffer: %s at %zu",
                       why.msg, why.pos);
    }
    *ret = j;
    return NULL;
}

void http_json_end(struct http_json *j)
{
    buf_unref(j->memory);
    *j = (struct http_json){0};
}
