#pragma once
/* What a load tester has to know of a model: its inputs, how it batches, and its statistics; as
 * questions to a server and from its answers. Pure. */
#include "base/err.h"
#include "base/strbuf.h"
#include "bench/bench_options.h"
#include "model/datatype.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BENCH_MODEL_INPUTS 256u
#define BENCH_MODEL_RANK   (BENCH_OPTIONS_RANK + 1) /* with the batch */

struct bench_input {
    char *name;
    enum datatype datatype;
    int64_t dims[BENCH_MODEL_RANK]; /* SHAPE_ANY = varies; as metadata has it, with the batch */
    uint32_t rank;
    bool optional;
};

struct bench_model {
    struct bench_input inputs[BENCH_MODEL_INPUTS];
    uint32_t input_count;
    uint32_t max_batch_size; /* 0 = does not batch */
    bool decoupled, sequences;
};

enum bench_question {
    BENCH_METADATA,
    BENCH_CONFIG,
    BENCH_STATISTICS,
};

/* How often, and how long in all. */
struct bench_duration {
    uint64_t count;
    uint64_t ns;
};

struct bench_statistics {
    bool known; /* the server told */
    uint64_t inferences, executions;
    struct bench_duration success, queue, input, infer, output, cache_hit, cache_miss;
};

/* bench_model_path - append the model's path of HTTP: "/v2/models/NAME", with its version if one is
 * asked for; what a path cannot hold is percent-encoded. */
void bench_model_path(const struct bench_options *o, struct strbuf *to);

/* bench_model_ask - the question in a protocol.
 * ret_path  of gRPC: the method; of HTTP: the message is complete and has the path
 * ret       cleared first; for gRPC a message with its 5-byte prefix */
void bench_model_ask(const struct bench_options *o, enum bench_question q, const char **ret_path,
                     struct strbuf *ret);

/* bench_model_metadata, bench_model_config - take an answer in.
 * errors  INTERNAL if it is none */
struct err *bench_model_metadata(struct bench_model *m, enum bench_protocol p, const void *answer,
                                 size_t len);
struct err *bench_model_config(struct bench_model *m, enum bench_protocol p, const void *answer,
                               size_t len);

/* bench_model_statistics - read an answer; the versions of a model are summed. */
struct err *bench_model_statistics(enum bench_protocol p, const void *answer, size_t len,
                                   struct bench_statistics *ret);

/* bench_model_since - what came after `before`; 0 where a counter went back. */
struct bench_statistics bench_model_since(const struct bench_statistics *before,
                                          const struct bench_statistics *after);

void bench_model_fini(struct bench_model *m);
