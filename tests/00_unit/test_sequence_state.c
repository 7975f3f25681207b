/* sequences/sequence_state: what states a configuration has, and how they begin. */
#include "sequences/sequence_state.h"

#include "base/budget.h"
#include "base/buf.h"
#include "infer/state.h"
#include "model/config.h"
#include "support/test_version.h"
#include "support/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[] = "/tmp/nereid-state-XXXXXX";

static void in_folder(const char *name, const void *bytes, size_t size)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/initial_state/%s", dir, name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, size, f), size);
    fclose(f);
}

static int make_folder(void **state)
{
    (void)state;
    char path[128];
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/initial_state", dir);
    assert_int_equal(mkdir(path, 0700), 0);
    in_folder("six", "abcdef", 6);
    in_folder("none", "", 0);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    static const char *const names[] = {"/initial_state/six", "/initial_state/none",
                                        "/initial_state", ""};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        char path[128];
        snprintf(path, sizeof(path), "%s%s", dir, names[i]);
        remove(path);
    }
    return 0;
}

static struct err *plan(const char *batch, const char *states, struct model_config **config,
                        struct state_plan **ret)
{
    static char text[8192];
    snprintf(text, sizeof(text),
             "max_batch_size: %s "
             "input [{ name: 'x' data_type: TYPE_FP32 dims: [ 1 ] }] "
             "output [{ name: 'y' data_type: TYPE_FP32 dims: [ 1 ] }] "
             "sequence_batching { %s }",
             batch, states);
    *config = test_version_config(text);
    return sequence_state_plan(*config, dir, ret);
}

#define STATE(type, dims, more)                                                                    \
    "state { input_name: 'in' output_name: 'out' data_type: " type " dims: [ " dims " ] " more " " \
    "}"                                                                                            \
    " "
#define BEGIN(type, dims, data) \
    "initial_state { name: 'b' data_type: " type " dims: [ " dims " ] " data " } "

static void expect(const char *batch, const char *states, const int64_t *shape, uint32_t rank,
                   const void *bytes, size_t size)
{
    struct model_config *config;
    struct state_plan *p;
    size_t before = budget_in_use();
    unit_succeeds(plan(batch, states, &config, &p));
    assert_int_equal(p->count, 1);
    const struct state_value *v = p->specs[0].initial;
    assert_int_equal(v->rank, rank);
    assert_memory_equal(v->shape, shape, rank * sizeof(*shape));
    assert_int_equal(v->byte_size, size);
    if (size)
        assert_memory_equal(v->data->data, bytes, size);
    state_plan_free(p);
    config_unref(config);
    assert_int_equal(budget_in_use(), before);
}

static void fails(const char *states, enum status code, const char *part)
{
    struct model_config *config;
    struct state_plan *p;
    size_t before = budget_in_use();
    unit_fails(plan("0", states, &config, &p), code, part);
    assert_null(p);
    config_unref(config);
    assert_int_equal(budget_in_use(), before);
}

static void how_states_begin(void **state)
{
    (void)state;
    static const char zeros[64];
    const int64_t cube[] = {1, 1, 2};
    expect("4", STATE("TYPE_INT16", "-1, 2", ""), cube, 3, zeros, 4);
    expect("0", STATE("TYPE_INT16", "-1, 2", ""), cube + 1, 2, zeros, 4);
    const int64_t strings[] = {1, 3};
    expect("4", STATE("TYPE_STRING", "3", ""), strings, 2, zeros, 12);
    const int64_t five[] = {5};
    expect("0", STATE("TYPE_INT8", "-1", BEGIN("TYPE_INT8", "5", "data_file: 'six'")), five, 1,
           "abcde", 5);
    expect("0", STATE("TYPE_INT8", "-1", BEGIN("TYPE_INT8", "5", "zero_data: false")), five, 1,
           zeros, 5);
    expect("0", STATE("TYPE_STRING", "5", BEGIN("TYPE_STRING", "5", "data_file: 'six'")), five, 1,
           "abcdef", 6);
    const int64_t nothing[] = {0};
    expect("0", STATE("TYPE_INT8", "0", BEGIN("TYPE_INT8", "0", "data_file: 'none'")), nothing, 1,
           "", 0);
}

static void what_is_refused(void **state)
{
    (void)state;
    fails(STATE("TYPE_INT8", "7", BEGIN("TYPE_INT8", "7", "data_file: 'six'")), STATUS_INVALID_ARG,
          "initial_state setting expects 7 bytes, but the data provided from six only has 6 bytes");
    fails(STATE("TYPE_INT8", "7", BEGIN("TYPE_INT8", "7", "data_file: 'missing'")),
          STATUS_NOT_FOUND, "initial_state of state 'in'");
    fails(STATE("TYPE_INT8", "7", BEGIN("TYPE_INT8", "7", "data_file: '../x'")), STATUS_INVALID_ARG,
          "../x");
    fails(STATE("TYPE_INT64", "4611686018427387904", ""), STATUS_INVALID_ARG,
          "byte size for tensor 'in' exceeds maximum size of 9223372036854775807");
    fails(STATE("TYPE_INT64", "-2", ""), STATUS_INVALID_ARG,
          "tensor 'in' contains an invalid dimension [-2]");
    fails(STATE("TYPE_INVALID", "1", ""), STATUS_INVALID_ARG, "state 'in' needs a data_type");
    /* The first of two is made already when the second fails. */
    fails(STATE("TYPE_INT8", "1", "") STATE("TYPE_INT8", "1", "use_growable_memory: true"),
          STATUS_INVALID_ARG, "use_single_buffer");
}

static void several_and_none(void **state)
{
    (void)state;
    struct model_config *config;
    struct state_plan *p;
    unit_succeeds(plan("2", "", &config, &p));
    assert_null(p);
    config_unref(config);
    unit_succeeds(
        plan("2",
             STATE("TYPE_INT8", "3",
                   "") "state { input_name: 'x' output_name: 'z' data_type: TYPE_FP32 dims: [ 1 ] "
                       "use_same_buffer_for_input_output: true } "
                       "state { input_name: 'other' output_name: 'z' data_type: TYPE_FP32 }",
             &config, &p));
    assert_int_equal(p->count, 2);
    assert_int_equal(p->batched, 1);
    assert_false(p->variable);
    assert_false(p->specs[0].is_input || p->specs[0].in_place);
    assert_true(p->specs[1].is_input && p->specs[1].in_place);
    state_plan_free(p);
    config_unref(config);
}

static void memory_has_a_limit(void **state)
{
    (void)state;
    size_t limit = budget_limit();
    budget_set_limit(budget_in_use() + 100);
    fails(STATE("TYPE_INT8", "101", ""), STATUS_UNAVAILABLE, "state 'in'");
    fails(STATE("TYPE_INT8", "9223372036854775807", ""), STATUS_UNAVAILABLE, "state 'in'");
    budget_set_limit(limit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {UNIT(how_states_begin), UNIT(what_is_refused),
                                       UNIT(several_and_none), UNIT(memory_has_a_limit)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
