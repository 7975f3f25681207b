#pragma once
/* A JSON text that crosses the C ABI: the TRITONSERVER_Message of tritonserver.h. */
#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct message {
    uint32_t magic;
    char *json; /* followed by NUL; owned */
    size_t len;
};

/* message_new - the message owns json, which mem_free can free. */
struct message *message_new(char *json, size_t len);

/* message_read - make a message of a text of a plug-in's; the text is copied.
 * errors  INTERNAL if it is not JSON, with the error and its place; UNAVAILABLE without memory */
struct err *message_read(const char *json, size_t len, struct message **ret);

/* message_of - the object behind an ABI handle; NULL if the handle is none. */
struct message *message_of(void *handle);

/* message_check - the object behind p; a failed CHECK if p is none. */
struct message *message_check(void *p);

/* message_free - NULL is fine. */
void message_free(struct message *m);
