#pragma once
/* The library of Zstandard (RFC 8878), which is loaded when it is first needed: of its interface
 * what is used here, all of it stable since 1.4.0. Any thread. */
#include "base/err.h"

#include <stddef.h>

/* The largest window that a peer may want: RFC 9659. */
#define ZSTD_WINDOW_LOG 23

struct zstd_in {
    const void *data;
    size_t len;
    size_t at;
};

struct zstd_out {
    void *data;
    size_t len;
    size_t at;
};

enum zstd_parameter {
    ZSTD_PARAMETER_WINDOW_LOG_MAX = 100, /* of a decompressor */
    ZSTD_PARAMETER_LEVEL = 100,          /* of a compressor */
};

enum zstd_end {
    ZSTD_END_CONTINUE = 0,
    ZSTD_END_FRAME = 2,
};

/* Sizes from here on are none: see frame_size. */
#define ZSTD_SIZE_UNKNOWN (~0ull - 1)

struct zstd {
    void *(*unpacker_new)(void);
    size_t (*unpacker_free)(void *u);
    size_t (*unpacker_set)(void *u, int parameter, int value);
    size_t (*unpacker_bytes)(const void *u);
    size_t (*unpack)(void *u, struct zstd_out *out, struct zstd_in *in);
    void *(*packer_new)(void);
    size_t (*packer_free)(void *p);
    size_t (*packer_set)(void *p, int parameter, int value);
    size_t (*packer_set_size)(void *p, unsigned long long bytes);
    size_t (*packer_bytes)(const void *p);
    size_t (*pack)(void *p, struct zstd_out *out, struct zstd_in *in, int end);
    size_t (*bound)(size_t bytes);
    unsigned (*is_error)(size_t code);
    const char *(*error_name)(size_t code); /* static */
    /* the size that a frame says it has; ZSTD_SIZE_UNKNOWN or more = it does not say */
    unsigned long long (*frame_size)(const void *data, size_t len);
};

/* zstd_library - the functions.
 * errors  UNSUPPORTED if the system does not have the library */
struct err *zstd_library(const struct zstd **ret);
