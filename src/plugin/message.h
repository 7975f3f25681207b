#pragma once
/* A JSON text handed over the C ABI: the TRITONSERVER_Message of tritonserver.h. */
#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct message {
    uint32_t magic;
    char *json; /* ends in NUL beyond len; owned */
    size_t len;
};

/* message_new - takes json (mem_free'able) over. */
struct message *message_new(char *json, size_t len);

/* message_read - take a text of somebody else's, copied.
 * errors  INTERNAL when it is no JSON, with what was wrong and where; UNAVAILABLE without memory */
struct err *message_read(const char *json, size_t len, struct message **ret);

/* message_of - the object behind an ABI handle; NULL when it is none. */
struct message *message_of(void *handle);

/* message_check - the object if it is one; a check fails otherwise. */
struct message *message_check(void *p);

/* message_free - NULL is fine. */
void message_free(struct message *m);
