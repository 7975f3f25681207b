#pragma once
/* Copies log lines of an isolated model's process to the server's log. Private to isolate/. */
#include <stddef.h>

struct log_site;

/* isolate_log_relay - log one line that base/log wrote in the JSON format. Other text is logged
 * unchanged.
 * site  of the model, so that the rate limit of a process that logs too much affects only its
 *       own lines */
void isolate_log_relay(struct log_site *site, const char *model, const char *line, size_t len);
