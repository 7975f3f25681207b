#pragma once
/* The model repository extension over gRPC: index, load, unload. */
#include "grpc/grpc_method.h"

#include <protobuf-c/protobuf-c.h>

struct control_task;

/* grpc_repository_* - the message functions of methods (grpc_method.h); answered when the
 * operation is done.
 * source  spec/model_repository_extension.txt, GRPC */
void grpc_repository_index(struct grpc_stream *s, const uint8_t *data, size_t len,
                           struct buf **buf);
void grpc_repository_load(struct grpc_stream *s, const uint8_t *data, size_t len, struct buf **buf);
void grpc_repository_unload(struct grpc_stream *s, const uint8_t *data, size_t len,
                            struct buf **buf);

/* grpc_repository_finish - end the call that owns a task, which is held until now, with the task's
 * error or with a message, if somebody still waits for it. Frees the task. */
void grpc_repository_finish(struct control_task *t, const ProtobufCMessage *m);
