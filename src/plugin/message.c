#include "plugin/message.h"

#include "base/check.h"
#include "base/mem.h"

#define MESSAGE_MAGIC 0x4d455353u

struct message *message_new(char *json, size_t len)
{
    struct message *m = MEM_NEW(struct message);
    m->magic = MESSAGE_MAGIC;
    m->json = json;
    m->len = len;
    return m;
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
