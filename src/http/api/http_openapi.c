#include "http/api/http_openapi.h"

#include "base/build_version.h"
#include "base/check.h"
#include "base/strbuf.h"
#include "codec/pb_schema.h"
#include "proto/grpc_service.pb-c.h"
#include "proto/openapi.h"

#include <string.h>

struct operation {
    const char *method;
    const char *path;
    const char *id;
    const char *summary;
    const char *request;
    const char *yes;
    const char *no;
};

#define HTTP_OPERATION(kind, method, path, id, summary, request, yes, no) \
    {method, path, id, summary, request, yes, no},
static const struct operation operations[] = {
#include "http/api/http_route.def"
};

static const ProtobufCMessageDescriptor *const messages[] = {
    &inference__server_metadata_response__descriptor,
    &inference__model_metadata_response__descriptor,
    &inference__model_config__descriptor,
    &inference__model_statistics_response__descriptor,
    &inference__repository_index_response__model_index__descriptor,
};

/* References to the parameters that the path names: {model} ... */
static void put_parameters(struct strbuf *out, const char *path)
{
    strbuf_puts(out, "\"parameters\":[");
    const char *comma = "";
    for (const char *at = strchr(path, '{'); at; at = strchr(at, '{')) {
        size_t len = strcspn(++at, "}");
        strbuf_printf(out, "%s{\"$ref\":\"#/components/parameters/%.*s\"}", comma, (int)len, at);
        comma = ",";
    }
    strbuf_putc(out, ']');
}

static void put_answer(struct strbuf *out, const char *status, const char *name)
{
    if (*name)
        strbuf_printf(out, "\"%s\":{\"$ref\":\"#/components/responses/%s\"},", status, name);
}

static void put_operation(struct strbuf *out, const struct operation *o)
{
    strbuf_printf(out, ",\"%s\":{\"operationId\":\"%s\",\"summary\":\"%s\",", o->method, o->id,
                  o->summary);
    if (*o->request)
        strbuf_printf(out, "\"requestBody\":{\"$ref\":\"#/components/requestBodies/%s\"},",
                      o->request);
    strbuf_puts(out, "\"responses\":{");
    put_answer(out, "200", o->yes);
    put_answer(out, "400", o->no);
    strbuf_puts(out, "\"default\":{\"$ref\":\"#/components/responses/Error\"}}}");
}

/* Operations of one path are neighbours in the table. */
static void put_paths(struct strbuf *out)
{
    const char *path = "";
    for (size_t i = 0; i < sizeof(operations) / sizeof(*operations); i++) {
        const struct operation *o = &operations[i];
        if (strcmp(o->path, path) != 0) {
            strbuf_printf(out, "%s\"%s\":{", i ? "}," : "", o->path);
            put_parameters(out, o->path);
            path = o->path;
        }
        put_operation(out, o);
    }
    strbuf_putc(out, '}');
}

/* The object of proto/openapi.json, with more schemas at the end of its last member. */
static void put_components(struct strbuf *out)
{
    size_t len = openapi_bytes;
    for (int braces = 0; braces < 2;) {
        CHECK(len);
        braces += openapi_text[--len] == '}';
    }
    strbuf_append(out, openapi_text, len);
    strbuf_putc(out, ',');
    pb_schema_put(messages, sizeof(messages) / sizeof(*messages), "#/components/schemas/", out);
    strbuf_puts(out, "}}");
}

void http_openapi_put(struct strbuf *out)
{
    strbuf_puts(out, "{\"openapi\":\"3.1.0\",\"info\":{\"title\":\"Nereid\",\"summary\":\"Open "
                     "Inference Protocol with Triton's extensions\",\"version\":\"" BUILD_VERSION
                     "\",\"license\":{\"name\":\"Apache 2.0\",\"identifier\":\"Apache-2.0\"}},"
                     "\"security\":[{},{\"bearer\":[]},{\"key\":[]}],\"paths\":{");
    put_paths(out);
    strbuf_puts(out, "},\"components\":");
    put_components(out);
    strbuf_putc(out, '}');
}
