#pragma once
/* Lines of the log of an isolated model's process, in ours. Private to isolate/. */
#include <stddef.h>

struct log_site;

/* isolate_log_relay - one line as base/log writes it in the JSON format; other text is logged as
 * it is.
 * site  of the model: a process that says more than is written holds back nobody's lines but its
 *       own */
void isolate_log_relay(struct log_site *site, const char *model, const char *line, size_t len);
