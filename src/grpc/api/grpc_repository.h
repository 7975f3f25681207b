#pragma once
/* The model repository extension over gRPC: index, load, unload. */
#include "grpc/grpc_method.h"

/* grpc_repository_* - the message functions of methods (grpc_method.h); answered when the
 * operation is done.
 * source  spec/model_repository_extension.txt, GRPC */
void grpc_repository_index(struct grpc_stream *s, const uint8_t *data, size_t len,
                           struct buf **buf);
void grpc_repository_load(struct grpc_stream *s, const uint8_t *data, size_t len, struct buf **buf);
void grpc_repository_unload(struct grpc_stream *s, const uint8_t *data, size_t len,
                            struct buf **buf);
