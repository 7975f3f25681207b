#pragma once
/* The inference port: which function answers which route. */
#include "http/http_service.h"

extern const struct http_service http_api_service;
