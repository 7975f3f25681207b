#pragma once
/* Sends parameters of requests and responses between the two processes of an isolated model.
 * Private to isolate/. */
#include "base/err.h"
#include "infer/param.h"

struct isolate_wire;
struct strbuf;

void isolate_param_put(struct strbuf *sb, const struct param_list *params);

/* isolate_param_get - read what isolate_param_put wrote and append it; invalid bytes set w->bad.
 * errors  UNAVAILABLE if the arena has no room for a text, which is not the sender's fault */
struct err *isolate_param_get(struct isolate_wire *w, struct param_list *params, struct arena *a);
