#pragma once
/* Options of the front ends and the metrics page: restricted interfaces, compression levels,
 * which latencies are shown. */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct options;
struct options_row;

/* The groups of interfaces that can be restricted. */
enum options_category {
    OPTIONS_CATEGORY_HEALTH,
    OPTIONS_CATEGORY_METADATA,
    OPTIONS_CATEGORY_INFERENCE,
    OPTIONS_CATEGORY_SHARED_MEMORY,
    OPTIONS_CATEGORY_MODEL_CONFIG,
    OPTIONS_CATEGORY_MODEL_REPOSITORY,
    OPTIONS_CATEGORY_STATISTICS,
    OPTIONS_CATEGORY_TRACE,
    OPTIONS_CATEGORY_LOGGING,
    OPTIONS_CATEGORIES,
    OPTIONS_CATEGORY_METRICS = OPTIONS_CATEGORIES, /* which only keys are asked for */
    OPTIONS_CATEGORY_NONE,                         /* of what does not exist */
    OPTIONS_CATEGORY_OPEN, /* of what says nothing about the server: nobody is asked */
};

/* What --http-restricted-api and --grpc-restricted-protocol know. */
#define OPTIONS_CATEGORY_NAMES                                                                 \
    "health, metadata, inference, shared-memory, model-config, model-repository, statistics, " \
    "trace, logging"

/* options_front_category - by name, of these or "metrics"; NONE when there is none. */
enum options_category options_front_category(const char *name, size_t len);

/* The header that a category wants, and its value; of an unrestricted one both are NULL. */
struct options_restriction {
    const char *header;
    const char *value;
    bool of_file; /* one of the command line replaces it */
};

struct options_restrictions {
    struct options_restriction of[OPTIONS_CATEGORIES];
    bool any;
};

enum options_compression {
    OPTIONS_COMPRESSION_NONE,
    OPTIONS_COMPRESSION_LOW,
    OPTIONS_COMPRESSION_MEDIUM,
    OPTIONS_COMPRESSION_HIGH,
};

/* TLS of a front end; files that are not given are NULL. */
struct options_tls {
    bool on;
    bool mutual; /* clients need a certificate */
    const char *cert;
    const char *key;
    const char *root;
};

/* The port of clients of OpenAI. */
struct options_openai {
    bool allow;
    const char *address; /* NULL = the same as http_address */
    uint16_t port;
};

#define OPTIONS_MAX_QUANTILES 32u

/* The settings of --metrics-config. */
struct options_latencies {
    bool no_counters;
    bool summaries;
    bool histograms;
    double quantiles[OPTIONS_MAX_QUANTILES]; /* 0..1 */
    uint32_t quantile_count;                 /* 0 = the defaults */
};

/* The longest origin: names of hosts have up to 253 bytes. */
#define OPTIONS_MAX_ORIGIN_BYTES 280

/* options_front_restrict, options_front_compression, options_front_latencies,
 * options_front_origin - set one of these options.
 * value   must outlive the field
 * errors  INVALID_ARG that names the option, the value and the allowed values */
struct err *options_front_restrict(const struct options_row *row, const char *value,
                                   struct options *o, struct options_restrictions *field);
/* options_front_of_file - what has been set so far comes from the file of --config. */
void options_front_of_file(struct options_restrictions *r);
struct err *options_front_compression(const struct options_row *row, const char *value,
                                      enum options_compression *field);
struct err *options_front_latencies(const struct options_row *row, const char *value,
                                    struct options *o, struct options_latencies *field);
struct err *options_front_origin(const struct options_row *row, const char *value,
                                 struct options *o);
