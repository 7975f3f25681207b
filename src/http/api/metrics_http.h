#pragma once
/* The metrics port: GET /metrics. Worker's thread only. */
#include "http/http_service.h"

struct http_exchange;

extern const struct http_service metrics_http_service;

/* metrics_http_page - answer with the page. */
void metrics_http_page(struct http_exchange *x);
