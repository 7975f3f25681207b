/* os/dl: libraries opened at run time. */
#include "base/mem.h"
#include "os/dl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

int main(void);

static void a_missing_library_is_named(void **state)
{
    (void)state;
    struct dl *d = NULL;
    struct err *e = dl_open("/nowhere/libnothing.so", &d);
    assert_non_null(e);
    assert_non_null(strstr(err_message(e), "/nowhere/libnothing.so"));
    err_free(e);
}

static void finds_a_loaded_library_by_its_name(void **state)
{
    (void)state;
    char *path = dl_find_other("libcmocka", (const void *)(uintptr_t)main);
    assert_non_null(path);
    assert_non_null(strstr(path, "libcmocka"));
    mem_free(path);
    assert_null(dl_find_other("libnothing", (const void *)(uintptr_t)main));
}

/* The library that the address lies in is not another one. */
static void leaves_out_the_own_library(void **state)
{
    (void)state;
    assert_null(dl_find_other("libcmocka", (const void *)(uintptr_t)_cmocka_run_group_tests));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_missing_library_is_named),
        cmocka_unit_test(finds_a_loaded_library_by_its_name),
        cmocka_unit_test(leaves_out_the_own_library),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
