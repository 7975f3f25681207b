/* The table of datatypes. */
#include "model/datatype.h"

#include "proto/model_config.pb-c.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

/* PB-01, PB-02, X-27. */
static void same_as_the_schema(void **state)
{
    (void)state;
    const ProtobufCEnumDescriptor *type = &inference__data_type__descriptor;
    assert_int_equal(type->n_values, DATATYPE_COUNT);
    for (unsigned i = 0; i < type->n_values; i++)
        assert_string_equal(datatype_config_name((enum datatype)type->values[i].value),
                            type->values[i].name);
}

static void names(void **state)
{
    (void)state;
    for (int i = DATATYPE_INVALID + 1; i < DATATYPE_COUNT; i++) {
        const char *name = datatype_name((enum datatype)i);
        assert_int_equal(datatype_parse(name, strlen(name)), i);
        assert_int_equal(datatype_parse(name, strlen(name) - 1), DATATYPE_INVALID);
        bool same = strcmp(datatype_config_name((enum datatype)i) + strlen("TYPE_"), name) == 0;
        assert_int_equal(same, i != DATATYPE_BYTES);
    }
    assert_int_equal(datatype_parse("fp32", 4), DATATYPE_INVALID);
    assert_int_equal(datatype_parse("TYPE_FP32", 9), DATATYPE_INVALID);
    assert_int_equal(datatype_parse("", 0), DATATYPE_INVALID);
    assert_int_equal(datatype_parse("FP32", 5), DATATYPE_INVALID); /* with the byte behind it */
    assert_string_equal(datatype_name((enum datatype)99), "<invalid>");
}

static void sizes(void **state)
{
    (void)state;
    static const uint32_t bytes[DATATYPE_COUNT] = {0, 1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 8, 0, 2};
    for (int i = 0; i < DATATYPE_COUNT; i++)
        assert_int_equal(datatype_bytes((enum datatype)i), bytes[i]);
    assert_int_equal(datatype_bytes((enum datatype)99), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_as_the_schema),
        cmocka_unit_test(names),
        cmocka_unit_test(sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
