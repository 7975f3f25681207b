#pragma once
/* The interface that Vertex AI calls: predictions and health on the paths that it chose. A header
 * sends a prediction to another route of the inference port. docs/user/sagemaker-vertex.md */
#include "http/http_service.h"

struct err;
struct http_front;

extern const struct http_service vertex_service;

/* vertex_settle - choose the model that predictions are for; until then they are refused. Once,
 * after the models of the start were loaded and before the server is ready; any thread.
 * errors  INVALID_ARG: it is not loaded, or none was named and not exactly one is loaded */
struct err *vertex_settle(struct http_front *f);
