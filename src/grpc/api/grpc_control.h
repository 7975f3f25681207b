#pragma once
/* The control plane over gRPC: a message in, a message out, at once. What they tell comes from
 * server/control/describe.h. */
#include "base/err.h"
#include "grpc/grpc_method.h"

#include <protobuf-c/protobuf-c.h>

/* grpc_control_* - the message functions of methods (grpc_method.h). */
void grpc_control_server_live(struct grpc_stream *s, const uint8_t *data, size_t len,
                              struct buf **buf);
void grpc_control_server_ready(struct grpc_stream *s, const uint8_t *data, size_t len,
                               struct buf **buf);
void grpc_control_model_ready(struct grpc_stream *s, const uint8_t *data, size_t len,
                              struct buf **buf);
void grpc_control_server_metadata(struct grpc_stream *s, const uint8_t *data, size_t len,
                                  struct buf **buf);
void grpc_control_model_metadata(struct grpc_stream *s, const uint8_t *data, size_t len,
                                 struct buf **buf);
void grpc_control_model_config(struct grpc_stream *s, const uint8_t *data, size_t len,
                               struct buf **buf);
void grpc_control_model_statistics(struct grpc_stream *s, const uint8_t *data, size_t len,
                                   struct buf **buf);
void grpc_control_health_check(struct grpc_stream *s, const uint8_t *data, size_t len,
                               struct buf **buf);

/* grpc_control_unpack - read a request; NULL, and the call is ended, when it cannot be read. The
 * caller's. */
ProtobufCMessage *grpc_control_unpack(struct grpc_stream *s, const ProtobufCMessageDescriptor *type,
                                      const uint8_t *data, size_t len);

/* grpc_control_send - a message of an answer that tells about the server: where there is no room
 * it is spared (base/budget.h).
 * errors  UNAVAILABLE: no room */
struct err *grpc_control_send(struct grpc_stream *s, const ProtobufCMessage *m);

/* grpc_control_answer - end the call with an error, which is taken over, or with a message. */
void grpc_control_answer(struct grpc_stream *s, struct err *e, const ProtobufCMessage *m);

/* grpc_control_unsupported - of methods that exist and are not served: UNIMPLEMENTED, by name. */
void grpc_control_unsupported(struct grpc_stream *s, const uint8_t *data, size_t len,
                              struct buf **buf);
