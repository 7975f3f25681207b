#pragma once
/* What the process of an isolated model sends, taken apart. It is another process: nothing that
 * it says is believed unchecked. Private to isolate/. */
#include <stdbool.h>
#include <stddef.h>

struct isolate_reply;
struct isolate_session;

/* isolate_records_apply - one frame of records.
 * reply    what an order expects; NULL on the control socket, where records about requests alone
 *          may come
 * returns  false: they make no sense; those before the first that does not have taken effect */
bool isolate_records_apply(struct isolate_session *s, const void *bytes, size_t len,
                           struct isolate_reply *reply);
