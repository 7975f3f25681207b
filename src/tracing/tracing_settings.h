#pragma once
/* What is traced: values that hold for all models, those of a model in place of them, and how they
 * are changed. Pure. The words of errors are the reference's.
 * source  protocol/extension_trace, "Trace Setting" */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bits of a set of settings. */
#define TRACING_LEVEL     1u
#define TRACING_RATE      2u
#define TRACING_COUNT     4u
#define TRACING_FREQUENCY 8u

struct tracing_values {
    uint32_t level;     /* bits of TRITONSERVER_InferenceTraceLevel; 0 = off */
    uint32_t rate;      /* one of so many requests; 0 = only those that bring a context */
    int32_t count;      /* traces that may still begin; -1 = any number */
    uint32_t frequency; /* traces in a file with a number; 0 = all in one without */
};

/* Values, and which of them were set for this model, or by a client: the others follow what is
 * behind them. */
struct tracing_choice {
    unsigned specified;
    struct tracing_values values;
};

/* A change: settings that get a value, and those that follow what is behind them again. */
struct tracing_change {
    unsigned set;
    unsigned clear;
    struct tracing_values to;
};

/* tracing_settings_level - a level among `count` that are given together; a word that means
 * nothing is passed over.
 * errors  INVALID_ARG: OFF is not alone */
struct err *tracing_settings_level(struct tracing_change *c, const char *word, size_t count);

/* tracing_settings_number - the value of TRACING_RATE, TRACING_COUNT or TRACING_FREQUENCY, read as
 * the reference does: blanks in front and anything behind do no harm.
 * spaced  over gRPC one message has a space more
 * errors  INVALID_ARG: no number, or out of range */
struct err *tracing_settings_number(struct tracing_change *c, unsigned which, const char *text,
                                    bool spaced);

/* tracing_settings_no_file - the error for a client that wants to name the file. */
struct err *tracing_settings_no_file(void);

/* tracing_settings_resolve - what holds after a change.
 * behind   what settings follow that are not specified
 * current  NULL = none were specified yet */
struct tracing_choice tracing_settings_resolve(const struct tracing_values *behind,
                                               const struct tracing_choice *current,
                                               const struct tracing_change *c);

/* tracing_settings_valid - whether requests can be traced with them; else *ret_reason, "" where
 * only the count has run out.
 * has_target  there is a file, or a collector */
bool tracing_settings_valid(const struct tracing_values *v, bool has_target,
                            const char **ret_reason);

/* What was drawn of a set of values. */
struct tracing_drawn {
    uint64_t seen;  /* requests */
    uint64_t begun; /* traces that the count was charged for */
};

/* tracing_settings_draw - whether the request that comes now is traced.
 * v       valid, or only its count has run out; its count goes down
 * forced  it brings a context: it is traced in any case */
bool tracing_settings_draw(struct tracing_values *v, struct tracing_drawn *d, bool forced);

/* Where traces that ended go now. */
enum tracing_flush {
    TRACING_FLUSH_LATER,
    TRACING_FLUSH_PLAIN,    /* behind those in the file */
    TRACING_FLUSH_NUMBERED, /* into a file of their own with the next number */
};

/* tracing_settings_flush - when another trace has ended.
 * waiting  traces that have not been written
 * ended    all that ended
 * full     they take much memory */
enum tracing_flush tracing_settings_flush(const struct tracing_values *v,
                                          const struct tracing_drawn *d, uint64_t waiting,
                                          uint64_t ended, bool full);
