#include "bench/bench_options.h"

#include "base/mem.h"
#include "base/strbuf.h"
#include "os/sock.h"
#include "os/sock_unix.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum kind {
    KIND_TEXT,
    KIND_NUMBER,  /* a whole one, from least to most */
    KIND_PERCENT, /* above 0, at most 100 */
    KIND_SPREAD,  /* a percentage that may be 0 */
    KIND_MS,      /* a time, above 0 */
    KIND_RANGE,   /* of whole numbers, or if `least` is 0 of any */
    KIND_FLAG,
    KIND_PROTOCOL,
    KIND_ADDRESS,
    KIND_SHAPE,
    KIND_FORMAT,       /* binary or json */
    KIND_DISTRIBUTION, /* constant or poisson */
    KIND_MEMORY,       /* none or system */
    KIND_NOTHING,      /* taken for the sake of scripts; nothing follows from it */
};

struct bench_row {
    const char *name;
    char letter; /* 0 = none */
    enum kind kind;
    const char *value; /* what it takes, for people */
    size_t field;
    uint32_t least, most;
    const char *help;
};

#define LEAST_RATE  0.001 /* requests a second */
#define FIELD(name) offsetof(struct bench_options, name)

static const struct bench_row rows[] = {
    {"model-name", 'm', KIND_TEXT, "NAME", FIELD(model), 0, 0, "The model. Required."},
    {"model-version", 'x', KIND_TEXT, "NUMBER", FIELD(version), 0, 0,
     "Its version. Default: the server chooses."},
    {"url", 'u', KIND_ADDRESS, "HOST[:PORT]", 0, 0, 0,
     "The server. Default: localhost:8000, with gRPC localhost:8001."},
    {"protocol", 'i', KIND_PROTOCOL, "http|grpc", 0, 0, 0, "Default: http."},
    {"concurrency-range", 0, KIND_RANGE, "FIRST[:LAST[:STEP]]", FIELD(concurrency), 1,
     BENCH_OPTIONS_SLOTS, "Requests under way at any time: each level is measured. Default: 1."},
    {"request-rate-range", 0, KIND_RANGE, "FIRST[:LAST[:STEP]]", FIELD(rate), 0, BENCH_OPTIONS_RATE,
     "Requests a second, sent on a schedule that a slow server does not stretch: what waits "
     "counts from when it was due."},
    {"request-distribution", 0, KIND_DISTRIBUTION, "constant|poisson", 0, 0, 0,
     "The gaps of that schedule. Default: constant."},
    {"max-threads", 0, KIND_NUMBER, "COUNT", FIELD(slots), 1, BENCH_OPTIONS_SLOTS,
     "With a request rate: requests under way at most. Default: 1024."},
    {"batch-size", 'b', KIND_NUMBER, "COUNT", FIELD(batch_size), 1, 1u << 20,
     "Inferences of a request, for a model that batches. Default: 1."},
    {"shape", 0, KIND_SHAPE, "INPUT:DIM[,DIM]", 0, 0, 0,
     "The shape of an input whose dimensions vary, without the batch. May be repeated."},
    {"input-data", 0, KIND_TEXT, "random|zero|FILE|DIRECTORY", FIELD(input_data), 0, 0,
     "What is sent: a JSON file of perf_analyzer's form, with a list of steps for each sequence, "
     "or a directory with a file of raw bytes for each input. Default: random."},
    {"string-length", 0, KIND_NUMBER, "BYTES", FIELD(string_length), 0, BENCH_OPTIONS_STRINGS,
     "Of strings that are made up. Default: 128."},
    {"string-data", 0, KIND_TEXT, "TEXT", FIELD(string_data), 0, 0,
     "Every string made up is this."},
    {"input-tensor-format", 0, KIND_FORMAT, "binary|json", FIELD(json_input), 0, 0,
     "HTTP only. Default: binary."},
    {"output-tensor-format", 0, KIND_FORMAT, "binary|json", FIELD(json_output), 0, 0,
     "HTTP only. Default: binary."},
    {"percentile", 0, KIND_PERCENT, "PERCENT", FIELD(percentile), 0, 0,
     "The latency that has to be stable and is reported. Default: the mean."},
    {"measurement-interval", 'p', KIND_NUMBER, "MILLISECONDS", FIELD(interval_ms), 10, 3600000,
     "The length of a window. Default: 5000."},
    {"stability-percentage", 's', KIND_PERCENT, "PERCENT", FIELD(stability), 0, 0,
     "A level is measured when three windows in a row are within this of their mean, in "
     "throughput and latency. Default: 10."},
    {"max-trials", 'r', KIND_NUMBER, "COUNT", FIELD(max_trials), 1, 10000,
     "Windows of a level at most. Default: 10."},
    {"latency-threshold", 'l', KIND_MS, "MILLISECONDS", FIELD(latency_limit_ms), 0, 0,
     "The level that exceeds this is the last."},
    {"calls-per-connection", 0, KIND_NUMBER, "COUNT", FIELD(calls_per_connection), 1,
     BENCH_OPTIONS_SLOTS, "gRPC only: calls that share a connection. Default: 6."},
    {"shared-memory", 0, KIND_MEMORY, "none|system", FIELD(shared_memory), 0, 0,
     "With system, inputs lie in shared memory, and requests name it; the server is on this "
     "machine. Default: none."},
    {"streaming", 0, KIND_FLAG, NULL, FIELD(streaming), 0, 0,
     "gRPC only: requests go over streams, one for each request under way. Models that answer with "
     "any number of responses need it."},
    {"sequence-length", 0, KIND_NUMBER, "COUNT", FIELD(sequence_length), 1, 1000000,
     "Requests of a sequence, for a model that takes sequences. Default: as many as the list of "
     "--input-data has that the sequence sends, else 20."},
    {"sequence-length-variation", 0, KIND_SPREAD, "PERCENT", FIELD(sequence_variation), 0, 0,
     "Lengths differ by as much, but those of a list. Default: 20."},
    {"start-sequence-id", 0, KIND_NUMBER, "NUMBER", FIELD(sequence_first), 1, UINT32_MAX,
     "The correlation id of the first sequence. Default: 1."},
    {"num-of-sequences", 0, KIND_NUMBER, "COUNT", FIELD(sequence_count), 1, BENCH_OPTIONS_SLOTS,
     "With a request rate: sequences at a time. Default: 4."},
    {"filename", 'f', KIND_TEXT, "FILE", FIELD(csv), 0, 0,
     "Write a CSV with a row for each level."},
    {"html", 0, KIND_TEXT, "FILE", FIELD(html), 0, 0,
     "Write a report with tables and plots, which needs no other file."},
    {"verbose", 'v', KIND_FLAG, NULL, FIELD(verbose), 0, 0, "Print every window."},
    {"async", 'a', KIND_NOTHING, NULL, 0, 0, 0, "Taken, without effect: calls never block."},
    {"sync", 0, KIND_NOTHING, NULL, 0, 0, 0, "Taken, without effect."},
    {"help", 'h', KIND_FLAG, NULL, FIELD(help), 0, 0, "This text."},
};

#define ROW_COUNT (sizeof(rows) / sizeof(*rows))

static struct err *bench_options_bad(const struct bench_row *row, const char *expected,
                                     const char *found)
{
    return err_new(STATUS_INVALID_ARG, "option --%s: expected %s, found '%s'", row->name, expected,
                   found);
}

/* Returns false if the text does not begin with a number of at least 0. */
static bool read_real(const char **text, double *ret)
{
    char *end;
    if (!((**text >= '0' && **text <= '9') || **text == '.'))
        return false;
    *ret = strtod(*text, &end);
    *text = end;
    return true;
}

/* A number of a range. */
static bool read_level(const struct bench_row *row, const char **text, double *ret)
{
    return read_real(text, ret) && *ret <= row->most &&
           (row->least ? *ret >= row->least && *ret == (uint32_t)*ret : *ret >= LEAST_RATE);
}

static struct err *read_range(const struct bench_row *row, const char *text,
                              struct bench_range *ret)
{
    struct bench_range r = {.given = true, .step = 1};
    char expected[128];
    const char *at = text;
    bool ok = read_level(row, &at, &r.first);
    double last = r.first;
    if (ok && *at == ':')
        ok = (at++, read_level(row, &at, &last));
    if (ok && *at == ':')
        ok = (at++, read_level(row, &at, &r.step));
    if (!ok || *at || last < r.first) {
        snprintf(expected, sizeof(expected),
                 "FIRST[:LAST[:STEP]], %s %g to %u and LAST not below FIRST",
                 row->least ? "whole numbers from" : "each from",
                 row->least ? row->least : LEAST_RATE, row->most);
        return bench_options_bad(row, expected, text);
    }
    double steps = (last - r.first) / r.step;
    if (steps >= BENCH_OPTIONS_LEVELS)
        return bench_options_bad(row, "a range of at most 1000 levels", text);
    r.count = 1 + (uint32_t)(steps + 1e-9); /* 0.1:1:0.1 has ten, however they are rounded */
    *ret = r;
    return NULL;
}

static struct err *read_shape(const struct bench_row *row, const char *text,
                              struct bench_options *o)
{
    const char *colon = strrchr(text, ':');
    if (o->shape_count == BENCH_OPTIONS_SHAPES || !colon || colon == text)
        return bench_options_bad(row, "INPUT:DIM,DIM,... (64 times at most)", text);
    struct bench_shape *s = &o->shapes[o->shape_count];
    *s = (struct bench_shape){.name = text, .name_len = (size_t)(colon - text)};
    const char *at = colon;
    do {
        char *end;
        errno = 0;
        long long dim = strtoll(++at, &end, 10);
        if (errno || end == at || dim < 0 || s->rank == BENCH_OPTIONS_RANK)
            return bench_options_bad(row, "INPUT:DIM,DIM,... with dimensions of at least 0", text);
        s->dims[s->rank++] = dim;
        at = end;
    } while (*at == ',');
    if (*at)
        return bench_options_bad(row, "INPUT:DIM,DIM,... with dimensions of at least 0", text);
    o->shape_count++;
    return NULL;
}

/* HOST, HOST:PORT, [IPV6]:PORT or unix:PATH; a scheme in front is dropped, unless it asks for
 * TLS. */
static struct err *read_address(const struct bench_row *row, const char *text,
                                struct bench_options *o)
{
    const char *found = text;
    const char *scheme = sock_unix_path(text) ? NULL : strstr(text, "://");
    if (strncasecmp(text, "https://", 8) == 0 || strncasecmp(text, "grpcs://", 8) == 0)
        return bench_options_bad(
            row, "an address without TLS, which nereid bench does not speak: http://HOST:PORT",
            text);
    text = scheme ? scheme + 3 : text;
    size_t len = strlen(text);
    while (len && text[len - 1] == '/' && !sock_unix_path(text))
        len--;
    char *host = mem_strndup(text, len);
    char *colon = strrchr(host, ':');
    char *bracket = strrchr(host, ']');
    unsigned long port = 0;
    bool ok = *host;
    if (!sock_unix_path(host) && colon &&
        (bracket ? colon > bracket : strchr(host, ':') == colon)) {
        char *end;
        port = strtoul(colon + 1, &end, 10);
        ok = colon != host && !*end && port > 0 && port <= UINT16_MAX;
        *colon = 0;
    }
    if (*host == '[' && bracket) {
        *bracket = 0;
        memmove(host, host + 1, strlen(host));
    }
    mem_free(o->host);
    o->host = host;
    o->port = (uint16_t)port;
    return ok ? NULL : bench_options_bad(row, "HOST:PORT", found);
}

static struct err *read_number(const struct bench_row *row, const char *text, uint32_t *ret)
{
    char expected[64];
    char *end;
    unsigned long n = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || n < row->least || n > row->most) {
        snprintf(expected, sizeof(expected), "a whole number from %u to %u", row->least, row->most);
        return bench_options_bad(row, expected, text);
    }
    *ret = (uint32_t)n;
    return NULL;
}

static struct err *bench_read_word(const struct bench_row *row, const char *text, const char *no,
                                   const char *yes, bool *ret)
{
    *ret = strcmp(text, yes) == 0;
    return *ret || strcmp(text, no) == 0 ? NULL : bench_options_bad(row, row->value, text);
}

static struct err *read_value(const struct bench_row *row, const char *text,
                              struct bench_options *o)
{
    void *field = (char *)o + row->field;
    bool grpc;
    double *real = field;
    struct err *e;
    switch (row->kind) {
    case KIND_TEXT:
        *(const char **)field = text;
        return NULL;
    case KIND_NUMBER:
        return read_number(row, text, field);
    case KIND_PERCENT:
    case KIND_SPREAD:
    case KIND_MS: {
        static const char *const expected[] = {[KIND_PERCENT] = "a number above 0, at most 100",
                                               [KIND_SPREAD] = "a number from 0 to 100",
                                               [KIND_MS] = "a number above 0"};
        const char *at = text;
        if (!read_real(&at, real) || *at || (row->kind != KIND_SPREAD && !(*real > 0)) ||
            (row->kind != KIND_MS && *real > 100))
            return bench_options_bad(row, expected[row->kind], text);
        return NULL;
    }
    case KIND_RANGE:
        return read_range(row, text, field);
    case KIND_PROTOCOL:
        e = bench_read_word(row, text, "http", "grpc", &grpc);
        o->protocol = grpc ? BENCH_GRPC : BENCH_HTTP;
        return e;
    case KIND_ADDRESS:
        return read_address(row, text, o);
    case KIND_SHAPE:
        return read_shape(row, text, o);
    case KIND_FORMAT:
        return bench_read_word(row, text, "binary", "json", field);
    case KIND_DISTRIBUTION:
        return bench_read_word(row, text, "constant", "poisson", &o->poisson);
    case KIND_MEMORY:
        return bench_read_word(row, text, "none", "system", field);
    case KIND_FLAG:
    case KIND_NOTHING:
        break;
    }
    return NULL;
}

/* "--name", "--name=value" or "-n"; *ret_value points into the argument, NULL = none in it. */
static const struct bench_row *row_of(const char *argument, const char **ret_value)
{
    *ret_value = NULL;
    if (argument[0] != '-' || !argument[1])
        return NULL;
    bool is_long = argument[1] == '-';
    size_t len = is_long ? strcspn(argument + 2, "=") : 1;
    for (size_t i = 0; i < ROW_COUNT; i++) {
        bool same =
            is_long ? strlen(rows[i].name) == len && memcmp(rows[i].name, argument + 2, len) == 0
                    : rows[i].letter == argument[1] && !argument[2];
        if (!same)
            continue;
        if (is_long && argument[2 + len] == '=')
            *ret_value = argument + len + 3;
        return &rows[i];
    }
    return NULL;
}

static struct err *bench_options_check(struct bench_options *o)
{
    if (o->help)
        return NULL;
    if (!o->model)
        return err_new(STATUS_INVALID_ARG, "no model is named: -m NAME, see --help");
    if (o->concurrency.given && o->rate.given)
        return err_new(STATUS_INVALID_ARG, "--concurrency-range and --request-rate-range: either "
                                           "so many requests at a time, or so many a second");
    if (o->protocol == BENCH_GRPC && (o->json_input || o->json_output))
        return err_new(STATUS_INVALID_ARG, "--input-tensor-format and --output-tensor-format: "
                                           "json is of HTTP only, leave out -i grpc");
    if (o->shared_memory && o->json_input)
        return err_new(STATUS_INVALID_ARG, "--shared-memory and --input-tensor-format: tensors "
                                           "are in shared memory or in JSON, leave out one");
    if (o->streaming && o->protocol == BENCH_HTTP)
        return err_new(STATUS_INVALID_ARG, "option --streaming: streams are of gRPC, add -i grpc");
    if (!o->concurrency.given && !o->rate.given)
        o->concurrency = (struct bench_range){true, 1, 1, 1};
    if (!o->host)
        o->host = mem_strdup("localhost");
    if (!o->port)
        o->port = o->protocol == BENCH_GRPC ? 8001 : 8000;
    o->address = sock_address(o->host, o->port);
    return NULL;
}

struct err *bench_options_parse(int argc, char **argv, struct bench_options *ret)
{
    *ret = (struct bench_options){.version = "",
                                  .slots = 1024,
                                  .batch_size = 1,
                                  .input_data = "random",
                                  .string_length = 128,
                                  .interval_ms = 5000,
                                  .stability = 10,
                                  .max_trials = 10,
                                  .calls_per_connection = 6,
                                  .sequence_variation = 20,
                                  .sequence_first = 1,
                                  .sequence_count = 4};
    for (int i = 0; i < argc; i++) {
        const char *value;
        const struct bench_row *row = row_of(argv[i], &value);
        if (!row)
            return err_new(STATUS_INVALID_ARG, "unknown argument '%s', see --help", argv[i]);
        if (!row->value) {
            if (value)
                return bench_options_bad(row, "no value", value);
            if (row->kind == KIND_FLAG)
                *((bool *)((char *)ret + row->field)) = true;
            continue;
        }
        if (!value && i + 1 < argc)
            value = argv[++i];
        if (!value)
            return err_new(STATUS_INVALID_ARG, "option --%s: expected %s, found nothing", row->name,
                           row->value);
        struct err *e = read_value(row, value, ret);
        if (e)
            return e;
    }
    return bench_options_check(ret);
}

void bench_options_fini(struct bench_options *o)
{
    mem_free(o->host);
    mem_free(o->address);
}

const char *bench_options_authority(const struct bench_options *o)
{
    return sock_unix_path(o->host) ? "localhost" : o->address;
}

char *bench_options_help(void)
{
    struct strbuf sb = STRBUF_INIT;
    strbuf_puts(&sb, "usage: nereid bench -m MODEL [OPTION...]\n\n"
                     "Sends inferences to a server, here or elsewhere, and prints how many it "
                     "answers in a\nsecond and how long they take.\n\n");
    for (size_t i = 0; i < ROW_COUNT; i++) {
        const struct bench_row *row = &rows[i];
        strbuf_puts(&sb, "  ");
        if (row->letter)
            strbuf_printf(&sb, "-%c, ", row->letter);
        strbuf_printf(&sb, "--%s%s%s\n        %s\n", row->name, row->value ? " " : "",
                      row->value ? row->value : "", row->help);
    }
    strbuf_puts(&sb, "\nExit status: 0 measured, 1 something failed, 2 wrong command line, 3 "
                     "measured, but a\nlevel did not become stable.\n");
    return strbuf_take(&sb);
}

bool bench_options_level(const struct bench_range *r, uint32_t n, double *ret)
{
    *ret = r->first + n * r->step;
    return n < r->count;
}
