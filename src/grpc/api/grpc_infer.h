#pragma once
/* ModelInfer and ModelStreamInfer: makes requests from messages, and messages from responses. */
#include "grpc/grpc_method.h"

/* grpc_infer_unary - the method ModelInfer. */
void grpc_infer_unary(struct grpc_stream *s, const uint8_t *data, size_t len, struct buf **buf);

/* grpc_infer_streamed - the method ModelStreamInfer. */
void grpc_infer_streamed(struct grpc_stream *s, const uint8_t *data, size_t len, struct buf **buf);
