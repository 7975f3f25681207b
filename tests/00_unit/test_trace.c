/* infer/trace: what a listener is told of a request. */
#include "infer/trace.h"

#include "infer/request.h"
#include "model/config.h"
#include "support/test_version.h"
#include "support/unit.h"

#include <string.h>

static unsigned told;
static char contents[32];
static size_t content_bytes;

static void note_tensor(TRITONSERVER_InferenceTrace *trace,
                        TRITONSERVER_InferenceTraceActivity activity, const char *name,
                        TRITONSERVER_DataType datatype, const void *base, size_t byte_size,
                        const int64_t *shape, uint64_t dim_count, TRITONSERVER_MemoryType memory,
                        int64_t memory_id, void *userp)
{
    (void)trace, (void)activity, (void)datatype, (void)shape, (void)dim_count, (void)memory;
    (void)memory_id, (void)userp;
    assert_string_equal(name, "i");
    assert_true(byte_size <= sizeof(contents));
    told++;
    content_bytes = byte_size;
    if (byte_size)
        memcpy(contents, base, byte_size);
}

static void release(TRITONSERVER_InferenceTrace *trace, void *userp)
{
    (void)userp;
    trace_free(trace_of(trace));
}

static const struct trace_listener listener = {.tensor = note_tensor, .release = release};

static void a_child_knows_its_parent(void **state)
{
    (void)state;
    struct trace *t = trace_new(TRITONSERVER_TRACE_LEVEL_TIMESTAMPS, 0, &listener);
    struct trace *child = trace_spawn(t);
    assert_int_equal(trace_parent(t), 0);
    assert_int_equal(trace_parent(child), trace_id(t));
    assert_int_not_equal(trace_id(child), trace_id(t));
    trace_release(child);
    trace_release(t);
}

static void no_unpin(struct request_target *t)
{
    (void)t;
}

/* Tells the input of a request that comes in these pieces. */
static void tell(uint32_t level, const struct tensor_piece *pieces, uint32_t count)
{
    struct model_config *config =
        test_version_config("name: 'm' backend: 'b' input { name: 'i' data_type: TYPE_UINT8 dims: "
                            "-1 } output { name: 'o' data_type: TYPE_UINT8 dims: -1 }");
    struct request_target target = {.config = config, .unpin = no_unpin};
    struct request *r = request_new(&target, NULL, NULL, NULL);
    int64_t bytes = 0;
    for (uint32_t i = 0; i < count; i++)
        bytes += (int64_t)pieces[i].size;
    request_add_input(r, "i", 1, DATATYPE_UINT8, &bytes, 1, pieces, count);
    r->trace = trace_new(level, 0, &listener);
    told = 0;
    trace_inputs(r, TRITONSERVER_TRACE_TENSOR_BACKEND_INPUT);
    trace_release(r->trace);
    r->trace = NULL;
    request_unref(r);
    config_unref(config);
}

/* However it came, with pieces of no bytes among them. */
static void an_input_is_told_in_one_piece(void **state)
{
    (void)state;
    static const struct tensor_piece pieces[] = {
        {.data = "ab", .size = 2}, {.data = NULL, .size = 0}, {.data = "cde", .size = 3}};
    tell(TRITONSERVER_TRACE_LEVEL_TENSORS, pieces, 3);
    assert_int_equal(told, 1);
    assert_int_equal(content_bytes, 5);
    assert_memory_equal(contents, "abcde", 5);
    tell(TRITONSERVER_TRACE_LEVEL_TENSORS, pieces, 1);
    assert_int_equal(told, 1);
    assert_memory_equal(contents, "ab", 2);
    tell(TRITONSERVER_TRACE_LEVEL_TENSORS, pieces, 0);
    assert_int_equal(told, 1);
    assert_int_equal(content_bytes, 0);
}

static void tensors_are_told_only_to_who_asks_for_them(void **state)
{
    (void)state;
    static const struct tensor_piece piece = {.data = "ab", .size = 2};
    tell(TRITONSERVER_TRACE_LEVEL_TIMESTAMPS, &piece, 1);
    assert_int_equal(told, 0);
}

UNIT_MAIN(UNIT(a_child_knows_its_parent), UNIT(an_input_is_told_in_one_piece),
          UNIT(tensors_are_told_only_to_who_asks_for_them))
