#pragma once
/* Settings of traces over gRPC: told, and changed where the call names some, in the order and the
 * words of the reference. */
#include "base/err.h"
#include "proto/grpc_service.pb-c.h"

#include <stddef.h>
#include <stdint.h>

struct buf;
struct grpc_stream;
struct tracing_change;

/* grpc_trace_setting - TraceSetting (grpc_method.h). */
void grpc_trace_setting(struct grpc_stream *s, const uint8_t *data, size_t len, struct buf **buf);

/* grpc_trace_read - what a call wants changed. Pure.
 * errors  INVALID_ARG, UNSUPPORTED */
struct err *grpc_trace_read(const Inference__TraceSettingRequest *in, struct tracing_change *ret);
