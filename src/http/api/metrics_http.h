#pragma once
/* The metrics port: GET /metrics. */
#include "http/http_service.h"

extern const struct http_service metrics_http_service;
