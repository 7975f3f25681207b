#pragma once
/* Traces as spans, in the protobuf encoding of OpenTelemetry. The names of spans, events and
 * attributes are the reference's. Pure.
 * source  opentelemetry-proto, collector/trace/v1/trace_service.proto */
#include <stddef.h>

struct strbuf;
struct tracing_record;

/* Fills n bytes with what nobody can guess: ids of spans. */
typedef void tracing_otlp_random_fn(void *ret, size_t n);

/* tracing_otlp_spans - append the spans of a record that is done and has some. */
void tracing_otlp_spans(const struct tracing_record *r, tracing_otlp_random_fn *random,
                        struct strbuf *spans);

/* tracing_otlp_attribute - append an attribute of the resource, that is, of this server. */
void tracing_otlp_attribute(struct strbuf *resource, const char *key, size_t key_len,
                            const char *value);

/* tracing_otlp_request - the ExportTraceServiceRequest with all that was appended. */
void tracing_otlp_request(const struct strbuf *resource, const struct strbuf *spans,
                          struct strbuf *ret);
