#include "http/clouds/sagemaker_models.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "support/unit.h"

#include <stdio.h>
#include <string.h>

static struct sagemaker_models *all;

static int models_setup(void **state)
{
    (void)state;
    all = sagemaker_models_new();
    return 0;
}

static int models_teardown(void **state)
{
    (void)state;
    sagemaker_models_free(all);
    return 0;
}

static bool is_target(const char *name, bool leaves, const char *expected)
{
    char target[SAGEMAKER_MODELS_NAME_BYTES];
    return sagemaker_models_target(all, name, strlen(name), leaves, target) &&
           strcmp(target, expected) == 0;
}

static bool adds(const char *name, const char *target)
{
    return !sagemaker_models_add(all, name, target, "/models/x");
}

static enum status refusal(const char *name, const char *target, const char *url)
{
    struct err *e = sagemaker_models_add(all, name, target, url);
    assert_non_null(e);
    enum status code = err_code(e);
    err_free(e);
    return code;
}

/* Found only while it serves; names and targets are free again afterwards. */
static void a_life(void **state)
{
    (void)state;
    assert_true(adds("a", "a.tar.gz"));
    assert_false(is_target("a", false, "a.tar.gz"));
    assert_int_equal(refusal("a", "b", "/x"), STATUS_ALREADY_EXISTS);
    assert_int_equal(refusal("b", "a.tar.gz", "/x"), STATUS_ALREADY_EXISTS);
    sagemaker_models_loaded(all, "a", true);
    assert_true(is_target("a", false, "a.tar.gz"));
    assert_true(is_target("a", true, "a.tar.gz"));
    assert_false(is_target("a", true, "a.tar.gz"));
    assert_int_equal(refusal("a", "b", "/x"), STATUS_ALREADY_EXISTS);
    sagemaker_models_left(all, "a", false);
    assert_true(is_target("a", true, "a.tar.gz"));
    sagemaker_models_left(all, "a", true);
    assert_false(is_target("a", false, "a.tar.gz"));
    assert_true(adds("b", "a.tar.gz"));
    sagemaker_models_loaded(all, "b", false);
    assert_true(adds("c", "a.tar.gz"));
}

static void what_is_told(void **state)
{
    (void)state;
    struct strbuf text = STRBUF_INIT;
    assert_true(adds("a\"", "t") && adds("b", "u"));
    sagemaker_models_loaded(all, "a\"", true);
    sagemaker_models_list(all, &text);
    assert_string_equal(strbuf_str(&text),
                        "{\"models\":[{\"modelName\":\"a\\\"\",\"modelUrl\":\"/models/x\"}]}");
    assert_false(sagemaker_models_tell(all, "b", 1, &text));
    assert_false(sagemaker_models_tell(all, "a", 1, &text));
    strbuf_fini(&text);
}

static void limits(void **state)
{
    (void)state;
    char longest[SAGEMAKER_MODELS_NAME_BYTES], name[32];
    char url[SAGEMAKER_MODELS_URL_BYTES + 1];
    memset(longest, 'n', sizeof(longest));
    longest[sizeof(longest) - 1] = '\0';
    memset(url, '/', sizeof(url));
    url[sizeof(url) - 1] = '\0';
    assert_true(adds(longest, longest));
    sagemaker_models_loaded(all, longest, true);
    assert_true(is_target(longest, false, longest));
    assert_int_equal(refusal("", "t", "/x"), STATUS_INVALID_ARG);
    assert_int_equal(refusal("n", "", "/x"), STATUS_INVALID_ARG);
    assert_int_equal(refusal("n", "t", ""), STATUS_INVALID_ARG);
    assert_int_equal(refusal("n", "t", url), STATUS_INVALID_ARG);
    for (unsigned i = 1; i < SAGEMAKER_MODELS_MOST; i++) {
        snprintf(name, sizeof(name), "m%u", i);
        assert_true(adds(name, name));
    }
    assert_int_equal(refusal("n", "t", "/x"), STATUS_UNAVAILABLE);
}

UNIT_MAIN(cmocka_unit_test_setup_teardown(a_life, models_setup, models_teardown),
          cmocka_unit_test_setup_teardown(what_is_told, models_setup, models_teardown),
          cmocka_unit_test_setup_teardown(limits, models_setup, models_teardown))
