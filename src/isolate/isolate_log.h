#pragma once
/* Lines of the log of an isolated model's process, in ours. Private to isolate/. */
#include <stddef.h>

/* isolate_log_relay - one line as base/log writes it in the JSON format; other text is logged as it is. */
void isolate_log_relay(const char *model, const char *line, size_t len);
