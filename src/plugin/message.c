#include "plugin/message.h"

#include "base/check.h"
#include "base/mem.h"

#include <string.h>
#include <yyjson.h>

#define MESSAGE_MAGIC 0x4d455353u

struct message *message_new(char *json, size_t len)
{
    struct message *m = MEM_NEW(struct message);
    m->magic = MESSAGE_MAGIC;
    m->json = json;
    m->len = len;
    return m;
}

struct err *message_read(const char *json, size_t len, struct message **ret)
{
    char *copy = mem_try_alloc(len + 1, 8);
    if (!copy)
        return err_new(STATUS_UNAVAILABLE, "no memory for a message of %zu bytes", len);
    if (len)
        memcpy(copy, json, len);
    copy[len] = '\0';
    yyjson_read_err why = {0};
    yyjson_doc *doc = yyjson_read_opts(copy, len, YYJSON_READ_ALLOW_INF_AND_NAN, NULL, &why);
    if (!doc) {
        mem_free(copy);
        return err_new(STATUS_INTERNAL, "failed to parse the request JSON buffer: %s at %zu",
                       why.msg, why.pos);
    }
    yyjson_doc_free(doc);
    *ret = message_new(copy, len);
    return NULL;
}

struct message *message_of(void *handle)
{
    struct message *m = handle;
    return m && m->magic == MESSAGE_MAGIC ? m : NULL;
}

struct message *message_check(void *p)
{
    struct message *m = p;
    CHECK_MAGIC(m, MESSAGE_MAGIC);
    return m;
}

void message_free(struct message *m)
{
    if (!m)
        return;
    CHECK_MAGIC(m, MESSAGE_MAGIC);
    m->magic = 0;
    mem_free(m->json);
    mem_free(m);
}
