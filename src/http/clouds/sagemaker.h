#pragma once
/* The interface that SageMaker calls: /ping, and /invocations of one model; or a list of models
 * that it loads, calls and unloads. docs/user/sagemaker-vertex.md */
#include "http/http_service.h"

extern const struct http_service sagemaker_service;
