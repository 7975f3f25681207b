#pragma once
/* Writes a ModelInferResponse, also inside a ModelStreamInferResponse: first the sizes, then the
 * bytes, with large tensors by reference. Field numbers: proto/grpc_service.proto. Pure; any
 * thread. */
#include "codec/infer_pb.h"

#include <sys/uio.h>

/* Tensors up to this size are copied next to the bytes around them; a larger one becomes a
 * separate piece. */
#define INFER_PB_COPY_BYTES ((size_t)2048)

struct infer_pb_output {
    struct infer_pb_slice name;
    struct infer_pb_slice datatype;
    const int64_t *shape;
    uint32_t rank;
    const void *data;
    uint64_t data_bytes;
    uint64_t wire_bytes; /* of the description; set by infer_pb_write_measure */
};

struct infer_pb_response {
    struct infer_pb_slice model_name;
    struct infer_pb_slice model_version;
    struct infer_pb_slice id;
    const struct infer_pb_param *params;
    struct infer_pb_output *outputs;
    uint32_t output_count;
    bool streamed;                       /* write it inside a ModelStreamInferResponse */
    struct infer_pb_slice error_message; /* only if streamed */
};

/* The sizes of a response. */
struct infer_pb_size {
    uint64_t total;       /* bytes of the message */
    uint64_t inner;       /* bytes of the ModelInferResponse in it */
    size_t head_bytes;    /* bytes of everything except tensors by reference */
    uint32_t piece_count; /* an upper limit for the number of pieces */
};

/* infer_pb_write_measure - compute the sizes; also sets wire_bytes of the outputs.
 * returns  INFER_PB_OK, or INFER_PB_NOT_UTF8 if a string of the response is not UTF-8 */
enum infer_pb_result infer_pb_write_measure(struct infer_pb_response *r, struct infer_pb_size *ret);

/* infer_pb_write - write a measured response.
 * head     room for size->head_bytes
 * pieces   room for size->piece_count. Pieces of head and tensors alternate and form the
 *          message; a tensor's bytes are borrowed
 * returns  the number of pieces; the first always starts at head */
uint32_t infer_pb_write(const struct infer_pb_response *r, const struct infer_pb_size *size,
                        uint8_t *head, struct iovec *pieces);
