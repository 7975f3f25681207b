#pragma once
/* The methods of inference.GRPCInferenceService, health and reflection. */
#include "grpc/grpc_method.h"

extern const struct grpc_service grpc_methods_service;
