#pragma once
/* The logging extension over HTTP: shows and changes log settings. Worker's thread only. */
#include "base/err.h"

struct http_exchange;
struct http_message;

/* http_logging_serve - GET shows the settings; POST changes the settings that its body names,
 * and shows all.
 * errors  of the body; then x is not answered and nothing has changed
 * source  protocol/extension_logging.md, HTTP/REST */
struct err *http_logging_serve(struct http_exchange *x, struct http_message *m);
