#pragma once
/* grpc.reflection.v1 and v1alpha: what this server serves, as descriptors. Handlers of
 * grpc_method. */
#include <stddef.h>
#include <stdint.h>

struct buf;
struct grpc_stream;

void grpc_reflection_message(struct grpc_stream *s, const uint8_t *data, size_t len,
                             struct buf **buf);
