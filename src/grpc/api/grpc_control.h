#pragma once
/* The control plane over gRPC: one message in, one message out, at once. The contents come from
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

/* grpc_control_unpack - parse a request, owned by the caller. If it is invalid, the call is
 * ended and NULL is returned. */
ProtobufCMessage *grpc_control_unpack(struct grpc_stream *s, const ProtobufCMessageDescriptor *type,
                                      const uint8_t *data, size_t len);

/* grpc_control_send - send a message that describes the server. If there is no room,
 * budget_spare allows it (base/budget.h).
 * errors  UNAVAILABLE: no room */
struct err *grpc_control_send(struct grpc_stream *s, const ProtobufCMessage *m);

/* grpc_control_answer - end the call with an error, which is freed, or with a message. */
void grpc_control_answer(struct grpc_stream *s, struct err *e, const ProtobufCMessage *m);

/* grpc_control_unsupported - for methods that are known but not supported: UNIMPLEMENTED, with
 * the name. */
void grpc_control_unsupported(struct grpc_stream *s, const uint8_t *data, size_t len,
                              struct buf **buf);
