#pragma once
/* The logging extension over HTTP: settings of the log, told and changed. Worker's thread only. */
#include "base/err.h"

struct http_exchange;
struct http_message;

/* http_logging_serve - GET tells the settings; POST changes those that its body names, and tells
 * all of them.
 * errors  what is wrong with the body; x is not answered then, and nothing is changed
 * source  protocol/extension_logging.md, HTTP/REST */
struct err *http_logging_serve(struct http_exchange *x, struct http_message *m);
