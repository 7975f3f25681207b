/* tracing/tracing_record, tracing_json, tracing_otlp: what a trace is told as. */
#include "tracing/tracing_record.h"

#include "base/mem.h"
#include "base/strbuf.h"
#include "codec/pb_wire.h"
#include "infer/trace.h"
#include "tracing/tracing_json.h"
#include "tracing/tracing_otlp.h"

#include "support/unit.h"

#include <stdio.h>
#include <string.h>
#include <yyjson.h>

static struct tracing_record *finished;

static void keep(struct tracing_record *r)
{
    finished = r;
}

static struct tracing_record *begin(uint32_t level)
{
    finished = NULL;
    struct tracing_record *r = tracing_record_new(level, keep, NULL);
    assert_non_null(r);
    return r;
}

/* The front end and the trace let go, in this order. */
static void finish(struct tracing_record *r, struct trace *t)
{
    tracing_record_unref(r);
    assert_null(finished);
    trace_release(t);
    assert_ptr_equal(finished, r);
}

static void count(void *ret, size_t n)
{
    static uint8_t next = 1;
    memset(ret, next++, n);
}

/* A span as it came out. */
struct seen {
    char name[64];
    uint8_t id[8];
    uint8_t parent[8];
    unsigned events;
    uint64_t start, end;
};

static unsigned read_spans(const struct strbuf *spans, struct seen *ret, unsigned most)
{
    unsigned found = 0;
    struct pb_wire all = pb_wire_of(spans->data, spans->len);
    struct pb_wire_field span, f;
    while (pb_wire_next(&all, &span) == PB_WIRE_FIELD) {
        assert_true(found < most);
        struct seen *s = &ret[found++];
        memset(s, 0, sizeof(*s));
        struct pb_wire w = pb_wire_of(span.data, span.len);
        while (pb_wire_next(&w, &f) == PB_WIRE_FIELD) {
            if (f.number == 2)
                memcpy(s->id, f.data, 8);
            else if (f.number == 4)
                memcpy(s->parent, f.data, 8);
            else if (f.number == 5)
                snprintf(s->name, sizeof(s->name), "%.*s", (int)f.len, (const char *)f.data);
            else if (f.number == 7)
                s->start = f.value;
            else if (f.number == 8)
                s->end = f.value;
            else if (f.number == 11)
                s->events++;
        }
    }
    return found;
}

static void named_activities_are_spans_in_spans(void **state)
{
    (void)state;
    struct tracing_record *r = begin(TRITONSERVER_TRACE_LEVEL_TIMESTAMPS);
    tracing_record_spans(r, NULL, NULL, 0);
    struct trace *t = tracing_record_trace(r);
    tracing_record_mark(r, "FRONT", 5);
    trace_report(t, TRITONSERVER_TRACE_REQUEST_START, 10);
    trace_report_custom(t, 20, "outer_START");
    trace_report_custom(t, 21, "inner_START");
    trace_report_custom(t, 22, "here");
    trace_report_custom(t, 23, "nobody_END"); /* no span of that name: a mere event */
    trace_report_custom(t, 24, "outer_END");  /* and what is open inside of it */
    trace_report(t, TRITONSERVER_TRACE_COMPUTE_START, 30);
    trace_report(t, TRITONSERVER_TRACE_COMPUTE_END, 40);
    trace_report(t, TRITONSERVER_TRACE_REQUEST_END, 50);
    trace_report_custom(t, 60, "late_START"); /* nothing is open any more: the root's child */
    finish(r, t);
    struct strbuf spans = STRBUF_INIT;
    struct seen seen[8];
    r->wall_offset = 0;
    tracing_otlp_spans(r, count, &spans);
    assert_int_equal(read_spans(&spans, seen, 8), 6);
    static const char *const names[] = {"InferRequest", "", "outer", "inner", "compute", "late"};
    static const int parents[] = {-1, 0, 1, 2, 1, 0};
    static const unsigned events[] = {1, 2, 1, 4, 2, 1};
    for (int i = 0; i < 6; i++) {
        assert_string_equal(seen[i].name, names[i]);
        assert_int_equal(seen[i].events, events[i]);
        if (parents[i] >= 0)
            assert_memory_equal(seen[i].parent, seen[parents[i]].id, 8);
    }
    assert_int_equal(seen[2].end, 24);
    assert_int_equal(seen[3].end, 24);
    assert_int_equal(seen[4].end, 40);
    assert_int_equal(seen[1].end, 50);
    strbuf_fini(&spans);
    tracing_record_free(r);
}

static void a_context_is_carried_on(void **state)
{
    (void)state;
    struct tracing_record *r = begin(TRITONSERVER_TRACE_LEVEL_TIMESTAMPS);
    struct tracing_context parent = {.flags = 1};
    memset(parent.trace_id, 0xab, sizeof(parent.trace_id));
    memset(parent.span_id, 0xcd, sizeof(parent.span_id));
    tracing_record_spans(r, &parent, "a=\"b\\c", 6);
    struct trace *t = tracing_record_trace(r);
    struct trace *child = trace_spawn(t);
    trace_report(t, TRITONSERVER_TRACE_REQUEST_START, 10);
    trace_report(child, TRITONSERVER_TRACE_REQUEST_START, 20);
    yyjson_doc *doc = yyjson_read(trace_context(child), strlen(trace_context(child)), 0);
    assert_non_null(doc);
    yyjson_val *root = yyjson_doc_get_root(doc);
    const char *told = yyjson_get_str(yyjson_obj_get(root, "traceparent"));
    struct tracing_context mine;
    assert_true(tracing_context_parse(told, strlen(told), &mine));
    assert_memory_equal(mine.trace_id, parent.trace_id, sizeof(mine.trace_id));
    assert_memory_equal(mine.span_id, r->nodes->next->span_id, sizeof(mine.span_id));
    assert_string_equal(yyjson_get_str(yyjson_obj_get(root, "tracestate")), "a=\"b\\c");
    yyjson_doc_free(doc);
    tracing_record_unref(r);
    trace_release(t);
    assert_null(finished);
    trace_free(child); /* one that was never begun, or is forgotten, ends all the same */
    assert_ptr_equal(finished, r);
    tracing_record_free(r);
}

static void what_is_no_text_is_json_all_the_same(void **state)
{
    (void)state;
    struct tracing_record *r = begin(TRITONSERVER_TRACE_LEVEL_TIMESTAMPS);
    struct trace *t = tracing_record_trace(r);
    trace_report_custom(t, 1, "a\"\n\xff");
    finish(r, t);
    struct strbuf sb = STRBUF_INIT;
    strbuf_putc(&sb, '[');
    struct strbuf objects = STRBUF_INIT;
    tracing_json_put(r, &objects);
    strbuf_append(&sb, objects.data, objects.len);
    strbuf_putc(&sb, ']');
    yyjson_doc *doc = yyjson_read(sb.data, sb.len, 0);
    assert_non_null(doc);
    assert_int_equal(yyjson_arr_size(yyjson_doc_get_root(doc)), 2);
    yyjson_doc_free(doc);
    strbuf_fini(&objects);
    strbuf_fini(&sb);
    tracing_record_free(r);
}

static void there_is_a_limit(void **state)
{
    (void)state;
    size_t before = tracing_record_held();
    struct tracing_record *r = begin(TRITONSERVER_TRACE_LEVEL_TIMESTAMPS);
    struct trace *t = tracing_record_trace(r);
    for (unsigned i = 0; i < TRACING_RECORD_MOST_ACTIVITIES + 10; i++)
        trace_report(t, TRITONSERVER_TRACE_QUEUE_START, i);
    finish(r, t);
    assert_int_equal(r->count, TRACING_RECORD_MOST_ACTIVITIES);
    assert_int_equal(r->lost, 10);
    assert_true(tracing_record_held() > before);
    tracing_record_free(r);
    assert_int_equal(tracing_record_held(), before);
}

#define MOST_BYTES ((size_t)64 << 20)

/* A tensor that does not fit is told without its contents; what came before stays. */
static void all_records_share_their_room(void **state)
{
    (void)state;
    struct tracing_record *r = begin(TRITONSERVER_TRACE_LEVEL_TENSORS);
    struct trace *t = tracing_record_trace(r);
    size_t bytes = MOST_BYTES / 4;
    char *data = mem_zalloc(bytes);
    int64_t shape = (int64_t)bytes;
    for (int i = 0; i < 6; i++)
        trace_tensor(t, TRITONSERVER_TRACE_TENSOR_QUEUE_INPUT, "x", DATATYPE_UINT8, data, bytes,
                     &shape, 1);
    finish(r, t);
    mem_free(data);
    unsigned whole = 0, bare = 0;
    for (const struct tracing_activity *a = r->activities; a; a = a->next)
        *(a->tensor->data ? &whole : &bare) += 1;
    assert_int_equal(whole, 3);
    assert_int_equal(bare, 3);
    assert_in_range(tracing_record_held(), MOST_BYTES / 4 * 3, MOST_BYTES);
    tracing_record_free(r);
}

UNIT_MAIN(UNIT(named_activities_are_spans_in_spans), UNIT(a_context_is_carried_on),
          UNIT(what_is_no_text_is_json_all_the_same), UNIT(there_is_a_limit),
          UNIT(all_records_share_their_room))
