#include "codec/json_relax.h"

#include "base/mem.h"
#include "support/unit.h"

#include <string.h>

static void becomes(const char *text, const char *wanted)
{
    size_t len;
    char *copy = mem_strdup(text); /* of its own: reading past it is seen */
    char *found = json_relax(copy, strlen(copy), &len);
    assert_non_null(found);
    assert_int_equal(len, strlen(wanted));
    assert_memory_equal(found, wanted, len);
    mem_free(found);
    mem_free(copy);
}

static void strict_json_stays(void **state)
{
    (void)state;
    becomes("", "");
    becomes("{\"a\": [1, -2.5e3, true, null, \"b\\n\\u00e9\\\"'\"]}",
            "{\"a\": [1, -2.5e3, true, null, \"b\\n\\u00e9\\\"'\"]}");
}

static void people_write(void **state)
{
    (void)state;
    becomes("{a:1,_b2 : 'x',}", "{\"a\":1,\"_b2\" : \"x\",}");
    becomes("{'a\\'b':'say \"x\"'}", "{\"a'b\":\"say \\\"x\\\"\"}");
    becomes("{\"a\":\"x\ty\\qz\"}", "{\"a\":\"x\\u0009yqz\"}");
    becomes("{5:true}", "{5:true}");
    becomes("{a:True}", "{\"a\":True}");
}

static void what_is_cut_off(void **state)
{
    (void)state;
    becomes("'", "\"");
    becomes("{'a", "{\"a");
    becomes("'a\\", "\"a");
    becomes("a ", "a ");
    becomes("\x01\x02'\x01", "\x01\x02\"\\u0001");
}

UNIT_MAIN(cmocka_unit_test(strict_json_stays), cmocka_unit_test(people_write),
          cmocka_unit_test(what_is_cut_off))
