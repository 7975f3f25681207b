#pragma once
/* The live page: http_api_service, and besides it a page for the browser at `/`, its files below
 * `/nereid/`, and the numbers that it asks for again and again. docs/user/live-page.md */
#include "http/http_service.h"

extern const struct http_service live_http_service;
