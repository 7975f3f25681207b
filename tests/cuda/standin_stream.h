#pragma once
/* What streams and the graphs that are recorded of them share. */
#include "standin.h"

/* One thing that a stream was told to do: a copy, a fill, or to wait for another stream. */
struct standin_operation {
    struct standin_operation *next;
    bool is_fill;
    cuda_address to_address, from_address;
    size_t bytes;
    unsigned char value;
    void *to; /* where the addresses really lie: standin_resolve_both */
    const void *from;
    struct standin_block *blocks[2]; /* that it uses */
    struct cuda_stream *after;       /* NULL = waits for nothing */
    unsigned long mark;
};

struct cuda_stream {
    unsigned magic;
    struct cuda_stream *next;
    struct standin_device *device;
    struct standin_operation *first, **last;
    unsigned long queued, done;  /* operations */
    struct cuda_graph *recorded; /* NULL = what it is told is queued */
};

/* standin_stream_of - the stream behind a handle; NULL, with *ret_result set, if it is none. */
struct cuda_stream *standin_stream_of(struct cuda_stream *handle, int *ret_result);

/* standin_enqueue - queue an operation, or record it. */
void standin_enqueue(struct cuda_stream *s, const struct standin_operation *o);

/* standin_resolve_both - fill in where the addresses really lie; the result. */
int standin_resolve_both(struct standin_operation *o);

/* standin_graph_takes - whether the stream is recorded: it has the operation then. */
bool standin_graph_takes(struct cuda_stream *s, const struct standin_operation *o);
