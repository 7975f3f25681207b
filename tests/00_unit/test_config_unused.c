/* Settings that change nothing are named. */
#include "support/config_steps.h"

#include "model/config_unused.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void each_is_named(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"", ""},
        {"optimization { graph { level: 1 } }", ""},
        {"optimization { priority: PRIORITY_MAX }", "optimization.priority"},
        {"optimization { cuda { graphs: true } eager_batching: true }",
         "optimization.cuda, optimization.eager_batching"},
        {"optimization { input_pinned_memory { enable: false } output_pinned_memory { } }",
         "optimization.input_pinned_memory, optimization.output_pinned_memory"},
        {"optimization { gather_kernel_buffer_threshold: 7 }",
         "optimization.gather_kernel_buffer_threshold"},
        {"cc_model_filenames { key: '7.5' value: 'a' }", "cc_model_filenames"},
        {"backend: 'tensorrt' cc_model_filenames { key: '7.5' value: 'a' } "
         "optimization { priority: PRIORITY_MAX eager_batching: true }",
         "optimization.eager_batching"},
        {"platform: 'tensorrt_plan' optimization { priority: PRIORITY_MIN cuda { graphs: true } }",
         ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        Inference__ModelConfig *p = config_steps_parse(rows[i][0]);
        struct strbuf names = STRBUF_INIT;
        config_unused(p, &names);
        assert_string_equal(strbuf_str(&names), rows[i][1]);
        strbuf_fini(&names);
        config_free_proto(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_is_named)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
