#pragma once
/* Reads a ModelInferRequest without copying: strings, tensors and parameters point into the
 * message; the structs lie in an arena of the caller. Field numbers: proto/grpc_service.proto.
 * Pure; any thread. */
#include "base/arena.h"
#include "codec/pb_wire.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The limits: inputs, outputs and raw contents of a request; parameters of one map, and of all
 * maps together (repeated ones count); dimensions of a shape. */
#define INFER_PB_MAX_TENSORS 4096u
#define INFER_PB_MAX_MAP     256u
#define INFER_PB_MAX_PARAMS  8192u
#define INFER_PB_MAX_RANK    256u

enum infer_pb_result {
    INFER_PB_OK,
    INFER_PB_MALFORMED, /* not a protobuf message */
    INFER_PB_NOT_UTF8,  /* a string is not UTF-8 */
    INFER_PB_TOO_MANY,  /* over one of the limits above */
};

struct infer_pb_slice {
    const char *data; /* may be NULL when len is 0 */
    size_t len;
};

/* The member of InferParameter that is set, as its field number. */
enum infer_pb_choice {
    INFER_PB_NONE = 0,
    INFER_PB_BOOL = 1,
    INFER_PB_INT64 = 2,
    INFER_PB_STRING = 3,
    INFER_PB_DOUBLE = 4,
    INFER_PB_UINT64 = 5,
};

/* A parameter in a map. Each name occurs once, with its last value. */
struct infer_pb_param {
    struct infer_pb_param *next;
    struct infer_pb_slice name;
    enum infer_pb_choice choice;
    union {
        uint64_t bits; /* the value on the wire; the other members reinterpret it */
        int64_t int64;
        double real;
        bool truth;
    };
    struct infer_pb_slice string;
};

/* Fields of InferTensorContents. */
enum infer_pb_content {
    INFER_PB_BOOLS = 1,
    INFER_PB_INTS = 2,
    INFER_PB_INT64S = 3,
    INFER_PB_UINTS = 4,
    INFER_PB_UINT64S = 5,
    INFER_PB_FP32S = 6,
    INFER_PB_FP64S = 7,
    INFER_PB_STRINGS = 8,
    INFER_PB_CONTENTS = 9, /* one more than the last */
};

struct infer_pb_part {
    struct infer_pb_part *next;
    struct infer_pb_slice bytes;
};

/* Typed contents of an input. The field may occur several times; its parts form one message. */
struct infer_pb_contents {
    struct infer_pb_part *parts;
    struct infer_pb_part **last;
    uint64_t count[INFER_PB_CONTENTS]; /* number of elements per field number */
    uint64_t string_bytes;             /* sum of the lengths of the strings */
};

struct infer_pb_tensor {
    struct infer_pb_tensor *next;
    struct infer_pb_slice name;
    struct infer_pb_slice datatype; /* only for inputs, like the fields below */
    int64_t *shape;
    uint32_t rank;
    uint32_t rank_cap;
    struct infer_pb_contents *contents; /* NULL = none */
    struct infer_pb_param *params;
    uint32_t param_count;
};

struct infer_pb_request {
    struct infer_pb_slice model_name;
    struct infer_pb_slice model_version;
    struct infer_pb_slice id;
    struct infer_pb_param *params;
    uint32_t param_count;
    struct infer_pb_tensor *inputs; /* in order */
    uint32_t input_count;
    struct infer_pb_tensor *outputs;
    uint32_t output_count;
    struct infer_pb_part *raws;
    uint32_t raw_count;
};

/* infer_pb_read - parse a ModelInferRequest.
 * data, len  the message; the result points into it
 * a          memory for the lists; the result is valid as long as the arena and the message */
enum infer_pb_result infer_pb_read(const void *data, size_t len, struct arena *a,
                                   struct infer_pb_request *ret);

/* infer_pb_content_bytes - the size of one kind of contents as tensor data. element_bytes is
 * that of the tensor's datatype; it is ignored for strings, which have a length of 4 bytes each. */
uint64_t infer_pb_content_bytes(const struct infer_pb_contents *c, enum infer_pb_content kind,
                                uint32_t element_bytes);

/* infer_pb_content_write - write one kind of contents as tensor data, infer_pb_content_bytes of
 * it. Integers are reduced to their low element_bytes (1, 2, 4 or 8); floats need their own
 * size. */
void infer_pb_content_write(const struct infer_pb_contents *c, enum infer_pb_content kind,
                            uint32_t element_bytes, void *to);

/* infer_pb_raw_offset - in a message of which only the first len bytes have come: where the
 * first raw tensor begins that does not end within them, so that it can be aligned. 0 if there
 * is none. */
size_t infer_pb_raw_offset(const void *data, size_t len);
