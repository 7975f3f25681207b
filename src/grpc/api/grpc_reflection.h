#pragma once
/* grpc.reflection.v1 and v1alpha: the server's services as descriptors. Message functions of
 * grpc_method.h. */
#include <stddef.h>
#include <stdint.h>

struct buf;
struct grpc_stream;

void grpc_reflection_message(struct grpc_stream *s, const uint8_t *data, size_t len,
                             struct buf **buf);
