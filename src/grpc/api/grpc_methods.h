#pragma once
/* The methods of inference.GRPCInferenceService, of health and of reflection. */
#include "grpc/grpc_method.h"

extern const struct grpc_service grpc_methods_service;
