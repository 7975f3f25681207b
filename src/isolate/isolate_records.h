#pragma once
/* Reads what the process of an isolated model sends. The process is not trusted: everything is
 * checked. Private to isolate/. */
#include <stdbool.h>
#include <stddef.h>

struct isolate_reply;
struct isolate_session;

/* isolate_records_apply - handle one frame of records.
 * reply    what an order expects; NULL on the control socket, where only records about requests
 *          are allowed
 * returns  false: a record is invalid; the records before it have taken effect */
bool isolate_records_apply(struct isolate_session *s, const void *bytes, size_t len,
                           struct isolate_reply *reply);
