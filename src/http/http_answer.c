#include "http/http_answer.h"

#include "codec/json_out.h"
#include "http/http_event.h"
#include "http/http_exchange.h"
#include "http/http_flat.h"
#include "http/http_out.h"
#include "http/http_shard.h"
#include "infer/classify.h"
#include "infer/request.h"
#include "infer/response.h"
#include "model/config.h"
#include "model/shape.h"
#include "model/tensor_json.h"
#include "serve/version.h"

#include <string.h>

/* JSON around an output, besides its name, shape and data; and around all outputs. */
#define OUTPUT_BYTES   128u
#define RESPONSE_BYTES 256u

static const char *reason_of(uint16_t status)
{
    switch (status) {
    case 100:
        return "Continue";
    case 200:
        return "OK";
    case 400:
        return "Bad Request";
    case 401:
        return "Unauthorized";
    case 403:
        return "Forbidden";
    case 404:
        return "Not Found";
    case 405:
        return "Not Allowed"; /* the reference's words; clients look at the number */
    case 409:
        return "Conflict";
    case 414:
        return "URI Too Long";
    case 431:
        return "Request Header Fields Too Large";
    case 500:
        return "Internal Server Error";
    case 501:
        return "Not Implemented";
    case 503:
        return "Service Unavailable";
    case 505:
        return "HTTP Version Not Supported";
    case 507:
        return "Insufficient Storage";
    default:
        return "Error";
    }
}

static char *http_answer_put_string(char *to, const char *s)
{
    return json_out_text(to, s, strlen(s));
}

/* How the output was requested. *hint is where to search first, because outputs usually come in
 * the order of the request. */
static const struct http_output_spec *spec_of(const struct http_exchange *x,
                                              const struct tensor_output *o, uint32_t *hint)
{
    for (uint32_t i = 0; i < x->spec_count; i++) {
        uint32_t at = (*hint + i) % x->spec_count;
        if (strcmp(x->specs[at].name, o->name) == 0) {
            *hint = at + 1;
            return &x->specs[at];
        }
    }
    return NULL;
}

static bool is_binary(const struct http_exchange *x, const struct tensor_output *o,
                      const struct http_output_spec *spec)
{
    return !o->placed && (spec ? spec->binary : x->binary_default);
}

/* Checks that strings do not run past the end of their tensor, before anything is written. */
static bool strings_fit(const struct tensor_output *o, uint64_t elements)
{
    const char *at = o->data;
    uint64_t left = o->byte_size;
    for (uint64_t i = 0; i < elements; i++) {
        uint32_t len;
        if (left < sizeof(len))
            return false;
        memcpy(&len, at, sizeof(len));
        left -= sizeof(len);
        if (left < len)
            return false;
        left -= len;
        at += sizeof(len) + len;
    }
    return true;
}

/* Adds; the result is SIZE_MAX on overflow. */
static size_t http_answer_add(size_t sum, size_t n)
{
    return __builtin_add_overflow(sum, n, &sum) ? SIZE_MAX : sum;
}

struct err *http_answer_check_json(const struct tensor_output *o, size_t *room)
{
    struct json_tensor_type type;
    uint64_t elements, bytes;
    if (o->memory == BUF_MEMORY_GPU)
        return err_new(STATUS_UNSUPPORTED, "output '%s' lies in GPU memory", o->name);
    if (!tensor_json_type(o->datatype, &type))
        return err_new(STATUS_INVALID_ARG,
                       "sending %s data via JSON is not supported. Please use the binary data "
                       "format for output",
                       datatype_name(o->datatype));
    bool fits = shape_elements(o->shape, o->rank, &elements);
    if (fits && type.kind == JSON_TENSOR_BYTES)
        fits = strings_fit(o, elements);
    else if (fits)
        fits = !__builtin_mul_overflow(elements, (uint64_t)type.width, &bytes) &&
               bytes == o->byte_size;
    if (!fits)
        return err_new(STATUS_INTERNAL,
                       "Failed to write 'data' field: output tensor shape does not match size of "
                       "output for '%s'",
                       o->name);
    size_t data;
    bool counted = json_tensor_room(type, elements, o->byte_size, &data);
    *room = counted ? http_answer_add(*room, data) : SIZE_MAX;
    return NULL;
}

/* Prepares one output: makes classes if requested, checks it, and adds the most bytes of its
 * JSON. */
static struct err *http_answer_prepare_output(struct http_exchange *x, struct tensor_output *o,
                                              uint32_t *hint)
{
    if (o->memory == BUF_MEMORY_GPU && !o->placed)
        return err_new(STATUS_UNSUPPORTED, "output '%s' lies in GPU memory", o->name);
    const struct http_output_spec *spec = spec_of(x, o, hint);
    if (spec && spec->classes) {
        bool batched = x->response->request->config->max_batch_size > 0;
        struct err *e = classify_output(x->response, o, spec->classes, batched,
                                        version_labels(version_of(x->response->request), o->name));
        if (e)
            return e;
    }
    x->json_room =
        http_answer_add(x->json_room, OUTPUT_BYTES + json_out_string_bytes(strlen(o->name)) +
                                          o->rank * JSON_OUT_NUMBER_BYTES);
    bool binary = spec ? spec->binary : x->binary_default;
    return binary || o->placed ? NULL : http_answer_check_json(o, &x->json_room);
}

struct err *http_answer_prepare(struct http_exchange *x)
{
    struct response *r = x->response;
    struct err *e = r->error;
    r->error = NULL;
    x->json_room = RESPONSE_BYTES + json_out_string_bytes(strlen(r->request->id)) +
                   json_out_string_bytes(strlen(version_of(r->request)->name));
    for (const struct param *p = r->params.first; !e && p; p = p->next) {
        if (p->type == PARAM_BYTES)
            e = err_new(STATUS_UNSUPPORTED,
                        "Response parameter of type 'TRITONSERVER_PARAMETER_BYTES' is not "
                        "currently supported");
        x->json_room += json_out_string_bytes(strlen(p->name)) + JSON_OUT_NUMBER_BYTES +
                        (p->type == PARAM_STRING ? json_out_string_bytes(p->bytes.len) : 0);
    }
    uint32_t hint = 0;
    for (struct tensor_output *o = r->outputs; !e && o; o = o->next)
        e = http_answer_prepare_output(x, o, &hint);
    if (e) {
        response_free(r);
        x->response = NULL;
    }
    return e;
}

static size_t body_room(const struct http_exchange *x)
{
    if (x->response)
        return x->json_room;
    return x->body_len <= HTTP_ANSWER_COPY_BYTES ? x->body_len : 0;
}

size_t http_answer_room(const struct http_exchange *x)
{
    bool head = x->part == HTTP_PART_EVENT ? x->begins : !x->begun;
    size_t room = x->part == HTTP_PART_WHOLE ? 0 : HTTP_EVENT_FRAME_BYTES;
    return http_answer_add(body_room(x), room + (head ? HTTP_ANSWER_HEAD_BYTES : 0));
}

char *http_answer_put_param(char *to, const struct param *p)
{
    switch (p->type) {
    case PARAM_STRING:
    case PARAM_BYTES:
        return json_out_string(to, p->bytes.data, p->bytes.len);
    case PARAM_INT:
        return json_out_int(to, p->i);
    case PARAM_BOOL:
        return json_out_bool(to, p->b);
    case PARAM_DOUBLE:
        return json_out_real(to, p->d);
    }
    return to;
}

static char *http_answer_put_params(char *to, const struct param_list *params)
{
    to = JSON_OUT_LITERAL(to, ",\"parameters\":{");
    for (const struct param *p = params->first; p; p = p->next) {
        if (p != params->first)
            *to++ = ',';
        to = json_out_string(to, p->name, strlen(p->name));
        *to++ = ':';
        to = http_answer_put_param(to, p);
    }
    *to++ = '}';
    return to;
}

static char *http_answer_put_output(char *to, const struct tensor_output *o, bool binary,
                                    bool base64)
{
    to = JSON_OUT_LITERAL(to, "{\"name\":");
    to = json_out_string(to, o->name, strlen(o->name));
    to = JSON_OUT_LITERAL(to, ",\"datatype\":\"");
    to = http_answer_put_string(to, datatype_name(o->datatype));
    to = JSON_OUT_LITERAL(to, "\",\"shape\":[");
    for (uint32_t i = 0; i < o->rank; i++) {
        if (i)
            *to++ = ',';
        to = json_out_int(to, o->shape[i]);
    }
    if (o->placed)
        return JSON_OUT_LITERAL(to, "]}");
    if (binary) {
        to = JSON_OUT_LITERAL(to, "],\"parameters\":{\"binary_data_size\":");
        to = json_out_uint(to, o->byte_size);
        return JSON_OUT_LITERAL(to, "}}");
    }
    struct json_tensor_type type = {JSON_TENSOR_BOOL, 1, false};
    uint64_t elements = 0;
    tensor_json_type(o->datatype, &type);
    type.base64 = base64;
    shape_elements(o->shape, o->rank, &elements);
    to = JSON_OUT_LITERAL(to, "],\"data\":");
    /* http_answer_prepare checked that it fits. If the memory was changed since, null is
     * written. */
    char *end = json_tensor_write(to, type, elements, o->data, o->byte_size);
    to = end ? end : JSON_OUT_LITERAL(to, "null");
    *to++ = '}';
    return to;
}

/* Writes the JSON of a model's response; *ret_binary is the size of the binary data that follow
 * it. */
static char *put_response(char *to, const struct http_exchange *x, uint64_t *ret_binary,
                          bool *ret_any)
{
    const struct response *r = x->response;
    const struct serve_version *v = version_of(r->request);
    *ret_binary = 0;
    *ret_any = false;
    if (x->flat)
        return http_flat_write(to, r, x->flat);
    *to++ = '{';
    if (*r->request->id) {
        to = JSON_OUT_LITERAL(to, "\"id\":");
        to = json_out_string(to, r->request->id, strlen(r->request->id));
        *to++ = ',';
    }
    to = JSON_OUT_LITERAL(to, "\"model_name\":");
    to = json_out_string(to, v->name, strlen(v->name));
    to = JSON_OUT_LITERAL(to, ",\"model_version\":\"");
    to = json_out_int(to, v->number);
    *to++ = '"';
    if (r->params.count)
        to = http_answer_put_params(to, &r->params);
    to = JSON_OUT_LITERAL(to, ",\"outputs\":[");
    uint32_t hint = 0;
    for (const struct tensor_output *o = r->outputs; o; o = o->next) {
        const struct http_output_spec *spec = spec_of(x, o, &hint);
        bool binary = is_binary(x, o, spec);
        *ret_binary += binary ? o->byte_size : 0;
        *ret_any = *ret_any || (binary && o->byte_size);
        if (o != r->outputs)
            *to++ = ',';
        to = http_answer_put_output(to, o, binary, spec && spec->base64);
    }
    return JSON_OUT_LITERAL(to, "]}");
}

static char *put_status_line(char *to, uint16_t status)
{
    if (status == 200)
        return JSON_OUT_LITERAL(to, "HTTP/1.1 200 OK\r\n");
    to = JSON_OUT_LITERAL(to, "HTTP/1.1 ");
    to = json_out_uint(to, status);
    *to++ = ' ';
    to = http_answer_put_string(to, reason_of(status));
    return JSON_OUT_LITERAL(to, "\r\n");
}

/* What only few answers say. */
__attribute__((cold, noinline)) static char *http_answer_put_rare(char *to,
                                                                  const struct http_exchange *x)
{
    if (x->cors)
        to = http_answer_put_string(to, x->cors);
    if (x->extra)
        to = http_answer_put_string(to, x->extra);
    if (!x->retry_secs)
        return to;
    to = JSON_OUT_LITERAL(to, "Retry-After: ");
    to = json_out_uint(to, x->retry_secs);
    return JSON_OUT_LITERAL(to, "\r\n");
}

static char *http_answer_put_more(char *to, const struct http_exchange *x)
{
    return x->cors || x->extra || x->retry_secs ? http_answer_put_rare(to, x) : to;
}

/* Whether the connection goes on, where that is to be said. */
static char *put_connection(char *to, const struct http_exchange *x)
{
    if (!x->keep_alive)
        return JSON_OUT_LITERAL(to, "Connection: close\r\n");
    return x->explicit_keep_alive ? JSON_OUT_LITERAL(to, "Connection: keep-alive\r\n") : to;
}

/* What a cloud's clients read the length of the JSON from: the type of the body. */
static char *put_answer_type(char *to, const char *type, uint64_t json_len)
{
    to = JSON_OUT_LITERAL(to, "Content-Type: ");
    to = http_answer_put_string(to, type);
    to = json_out_uint(to, json_len);
    return JSON_OUT_LITERAL(to, "\r\n");
}

/* Writes the head. It contains json_len if binary data follow the JSON (else 0). */
static char *put_head(char *to, const struct http_exchange *x, const char *content_type,
                      uint64_t json_len, uint64_t length)
{
    to = put_status_line(to, x->status);
    if (x->status == 100)
        return JSON_OUT_LITERAL(to, "\r\n");
    const char *answer_type = json_len ? x->shard->front->service->answer_type : NULL;
    if (answer_type) {
        to = put_answer_type(to, answer_type, json_len);
    } else if (content_type) {
        to = JSON_OUT_LITERAL(to, "Content-Type: ");
        to = http_answer_put_string(to, content_type);
        to = JSON_OUT_LITERAL(to, "\r\n");
    }
    if (json_len && !answer_type) {
        to = JSON_OUT_LITERAL(to, "Inference-Header-Content-Length: ");
        to = json_out_uint(to, json_len);
        to = JSON_OUT_LITERAL(to, "\r\n");
    }
    if (x->coding) {
        to = JSON_OUT_LITERAL(to, "Content-Encoding: ");
        to = http_answer_put_string(to, x->coding);
        to = JSON_OUT_LITERAL(to, "\r\n");
    }
    to = http_answer_put_more(to, x);
    to = put_connection(to, x);
    to = JSON_OUT_LITERAL(to, "Content-Length: ");
    to = json_out_uint(to, length);
    return JSON_OUT_LITERAL(to, "\r\n\r\n");
}

char *http_answer_put_head(char *to, const struct http_exchange *x)
{
    to = put_status_line(to, x->status);
    to = JSON_OUT_LITERAL(to, "Content-Type: ");
    to = http_answer_put_string(to, x->content_type);
    to = JSON_OUT_LITERAL(to, "\r\n");
    if (!x->explicit_keep_alive)
        to = JSON_OUT_LITERAL(to, "Transfer-Encoding: chunked\r\n");
    to = http_answer_put_more(to, x);
    to = put_connection(to, x);
    return JSON_OUT_LITERAL(to, "\r\n");
}

/* Writes the head so that it ends where the body begins. Returns where the head begins. */
static char *put_head_before(char *body, const struct http_exchange *x, const char *content_type,
                             uint64_t json_len, uint64_t length)
{
    char head[HTTP_ANSWER_HEAD_BYTES];
    size_t len = (size_t)(put_head(head, x, content_type, json_len, length) - head);
    memcpy(body - len, head, len);
    return body - len;
}

static size_t write_text(const struct http_exchange *x, char *to, struct http_out *out)
{
    char *end = put_head(to, x, x->content_type, x->json_len, x->body_len);
    bool copy = !x->head_only && x->body_len && x->body_len <= HTTP_ANSWER_COPY_BYTES;
    if (copy)
        end = json_out_text(end, x->body, x->body_len);
    http_out_add(out, to, (size_t)(end - to));
    if (!copy && !x->head_only)
        http_out_add(out, x->body, x->body_len);
    return (size_t)(end - to);
}

/* Adds the binary outputs, in order. */
static void http_answer_add_binary(const struct http_exchange *x, struct http_out *out)
{
    uint32_t hint = 0;
    for (const struct tensor_output *o = x->response->outputs; o; o = o->next)
        if (is_binary(x, o, spec_of(x, o, &hint)))
            http_out_add(out, o->data, o->byte_size);
}

void http_answer_body(struct http_exchange *x, char *to, struct http_out *out)
{
    uint64_t binary;
    bool any;
    size_t len = (size_t)(put_response(to, x, &binary, &any) - to);
    http_out_add(out, to, len);
    if (any)
        http_answer_add_binary(x, out);
    x->json_len = any ? len : 0;
    x->content_type = any ? "application/octet-stream" : HTTP_JSON;
}

size_t http_answer_write(struct http_exchange *x, char *to, struct http_out *out)
{
    if (x->part != HTTP_PART_WHOLE)
        return http_event_write(x, to, out);
    if (!x->response)
        return write_text(x, to, out);
    char *body = to + HTTP_ANSWER_HEAD_BYTES;
    uint64_t binary;
    bool any;
    char *end = put_response(body, x, &binary, &any);
    size_t json_len = (size_t)(end - body);
    char *head = put_head_before(body, x, any ? "application/octet-stream" : HTTP_JSON,
                                 any ? json_len : 0, json_len + binary);
    http_out_add(out, head, (size_t)(end - head));
    if (any)
        http_answer_add_binary(x, out);
    return (size_t)(end - to);
}
