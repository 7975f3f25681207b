#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is within records: numbers and texts one after the other, in the machine's own order, since
 * both sides run on one. Reading checks every length; what is read wrong once stays `bad`. */

enum {
    WIRE_MAX_DIMS = 64,
    WIRE_MAX_COUNT = 1 << 20,
    WIRE_MAX_SAID = 32768, /* bytes of what is said of an error */
};

/* Where a tensor's bytes are. */
enum wire_place {
    WIRE_INLINE, /* behind it, aligned to 16 */
    WIRE_ARENA,  /* in the shared memory, at an offset */
    WIRE_REMOTE, /* in the stub's own memory, at an address */
    WIRE_GPU,    /* down: in memory of a GPU that the server lends, under a number */
};

struct wire_out {
    char *at;
    size_t used, cap;
    bool failed; /* no memory */
};

void wire_fini(struct wire_out *out);

/* wire_grow - make room for bytes that the caller writes at the place that comes back; NULL = no
 * memory. */
void *wire_grow(struct wire_out *out, size_t bytes);

void wire_put_u32(struct wire_out *out, uint32_t value);
void wire_put_u64(struct wire_out *out, uint64_t value);
void wire_put_double(struct wire_out *out, double value);

/* wire_put_text - write bytes with their length; a NUL follows. */
void wire_put_text(struct wire_out *out, const char *text, size_t length);

/* wire_align - fill up to a multiple of 16. */
void wire_align(struct wire_out *out);

struct wire_in {
    const char *at;
    size_t bytes, used;
    bool bad;
};

uint32_t wire_u32(struct wire_in *in);
uint64_t wire_u64(struct wire_in *in);
double wire_double(struct wire_in *in);

/* wire_count - read how many of something follow; at most WIRE_MAX_COUNT. */
uint32_t wire_count(struct wire_in *in);

/* wire_text - read a text, borrowed from the record; a NUL follows it. Never NULL.
 * ret_length  NULL = not wanted */
const char *wire_text(struct wire_in *in, size_t *ret_length);

/* wire_said - read what is said of an error, at most WIRE_MAX_SAID of it.
 * returns  owned by the caller; NULL = no memory */
char *wire_said(struct wire_in *in);

/* Memory of a GPU. */
struct wire_gpu {
    char handle[64]; /* what CUDA's driver opens it by */
    uint64_t offset; /* of the tensor in what that opens */
    int32_t device;
    uint32_t unused;
};

/* A tensor as it is described in a record. */
struct wire_tensor {
    const char *name;
    size_t name_length;
    uint32_t datatype; /* TRITONSERVER_DataType */
    uint32_t rank;
    int64_t shape[WIRE_MAX_DIMS];
    uint32_t place;
    uint64_t bytes;
    const char *data;    /* WIRE_INLINE: borrowed from the record */
    uint64_t where;      /* all others */
    struct wire_gpu gpu; /* WIRE_GPU */
};

/* wire_put_tensor - describe a tensor.
 * tensor   its data is copied when it is not NULL; WIRE_INLINE with NULL: the caller writes
 * returns  where WIRE_INLINE data goes; NULL = elsewhere, or no memory */
char *wire_put_tensor(struct wire_out *out, const struct wire_tensor *tensor);

/* wire_tensor - read what wire_put_tensor wrote. */
void wire_tensor(struct wire_in *in, struct wire_tensor *ret_tensor);
