#pragma once
/* Parameters of requests and responses between the two processes of an isolated model. Private
 * to isolate/. */
#include "base/err.h"
#include "infer/param.h"

struct isolate_wire;
struct strbuf;

void isolate_param_put(struct strbuf *sb, const struct param_list *params);

/* isolate_param_get - append what was put, all of it read; what makes no sense sets w->bad.
 * errors  UNAVAILABLE when the arena has no room for a text, which is no fault of who put it */
struct err *isolate_param_get(struct isolate_wire *w, struct param_list *params, struct arena *a);
