#pragma once
/* Shared memory over gRPC: SystemSharedMemory*, CudaSharedMemory*, and what a tensor of an
 * inference request says of it. */
#include "base/err.h"
#include "codec/infer_pb.h"
#include "grpc/grpc_method.h"
#include "regions/regions_lend.h"

#include <stdbool.h>

/* grpc_regions_* - the message functions of methods (grpc_method.h). */
void grpc_regions_status(struct grpc_stream *s, const uint8_t *data, size_t len, struct buf **buf);
void grpc_regions_register(struct grpc_stream *s, const uint8_t *data, size_t len,
                           struct buf **buf);
void grpc_regions_unregister(struct grpc_stream *s, const uint8_t *data, size_t len,
                             struct buf **buf);
void grpc_regions_cuda_status(struct grpc_stream *s, const uint8_t *data, size_t len,
                              struct buf **buf);
void grpc_regions_cuda_register(struct grpc_stream *s, const uint8_t *data, size_t len,
                                struct buf **buf);
void grpc_regions_cuda_unregister(struct grpc_stream *s, const uint8_t *data, size_t len,
                                  struct buf **buf);

/* grpc_regions_part - what the parameters of an input or an output name.
 * ret        its text lies in the message
 * ret_given  false: no region is named
 * errors     INVALID_ARG */
struct err *grpc_regions_part(const struct infer_pb_tensor *t, struct regions_part *ret,
                              bool *ret_given);
