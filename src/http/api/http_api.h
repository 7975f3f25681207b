#pragma once
/* The inference port: which handler answers what. */
#include "http/http_service.h"

extern const struct http_service http_api_service;
