/* What clients send to change what is traced: the JSON of HTTP, the message of gRPC, and after it
 * the text of a traceparent. The first byte says which. Whatever comes, settings that hold can be
 * drawn from, and a context that was read is written as it was. */
#include "base/check.h"
#include "base/err.h"
#include "grpc/api/grpc_trace.h"
#include "http/api/http_trace_read.h"
#include "tracing/tracing_context.h"
#include "tracing/tracing_settings.h"

#include <string.h>

static void try_change(const struct tracing_change *c)
{
    static const struct tracing_values usual = {.rate = 1000, .count = -1};
    static const struct tracing_change nothing;
    struct tracing_choice one = tracing_settings_resolve(&usual, NULL, c);
    CHECK((one.specified & c->clear) == 0);
    struct tracing_choice again = tracing_settings_resolve(&usual, &one, &nothing);
    CHECK(again.values.rate == one.values.rate && again.values.count == one.values.count);
    const char *reason;
    struct tracing_drawn d = {0};
    bool valid = tracing_settings_valid(&one.values, true, &reason);
    CHECK(!valid || (one.values.level && one.values.rate && one.values.count >= -1));
    for (int i = 0; i < 3; i++)
        tracing_settings_draw(&one.values, &d, i == 2);
}

static void try_json(const char *text, size_t len)
{
    yyjson_doc *doc = yyjson_read(text, len, YYJSON_READ_ALLOW_INVALID_UNICODE);
    struct tracing_change c;
    struct err *e = http_trace_read(yyjson_doc_get_root(doc), &c);
    if (!e)
        try_change(&c);
    err_free(e);
    yyjson_doc_free(doc);
}

static void try_message(const uint8_t *data, size_t len)
{
    Inference__TraceSettingRequest *in = inference__trace_setting_request__unpack(NULL, len, data);
    if (!in)
        return;
    struct tracing_change c;
    struct err *e = grpc_trace_read(in, &c);
    if (!e)
        try_change(&c);
    err_free(e);
    inference__trace_setting_request__free_unpacked(in, NULL);
}

static void try_context(const char *text, size_t len)
{
    struct tracing_context c;
    char again[TRACING_CONTEXT_BYTES];
    tracing_context_state_fits(text, len);
    if (!tracing_context_parse(text, len, &c))
        return;
    tracing_context_format(&c, again);
    CHECK(memcmp(again + 2, text + 2, TRACING_CONTEXT_BYTES - 3) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    if (*data % 3 == 0)
        try_json((const char *)data + 1, size - 1);
    else if (*data % 3 == 1)
        try_message(data + 1, size - 1);
    else
        try_context((const char *)data + 1, size - 1);
    return 0;
}
