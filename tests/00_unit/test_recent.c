#include "metrics/recent.h"

#include "base/mem.h"
#include "metrics/front_metrics.h"
#include "support/unit.h"

#include <stdio.h>
#include <string.h>

static void nothing_came(void **state)
{
    (void)state;
    struct recent *r = recent_new();
    struct recent_failure *all;
    assert_int_equal(recent_read(r, &all), 0);
    assert_null(all);
    assert_int_equal(recent_noted(r), 0);
    recent_free(r);
    recent_free(NULL);
    recent_request(NULL, 0, "kept nowhere");
    recent_load(NULL, "m", 0, "kept nowhere");
}

/* The same failure is one entry with its number; the newest stands first. */
static void repeats_are_counted(void **state)
{
    (void)state;
    struct recent *r = recent_new();
    uint32_t id = front_metrics_model_id("resnet");
    recent_request(r, id, "wrong shape");
    recent_request(r, 0, "wrong shape");
    recent_load(r, "resnet", 0, "wrong shape");
    recent_load(r, "resnet", 3, "no such file");
    recent_request(r, id, "wrong shape");
    struct recent_failure *all;
    assert_int_equal(recent_read(r, &all), 4);
    assert_int_equal(recent_noted(r), 5);
    assert_string_equal(all[0].model, "resnet");
    assert_string_equal(all[0].text, "wrong shape");
    assert_int_equal(all[0].kind, RECENT_REQUEST);
    assert_int_equal(all[0].count, 2);
    assert_true(all[0].first_ms && all[0].last_ms >= all[0].first_ms);
    assert_string_equal(all[1].text, "version 3: no such file");
    assert_int_equal(all[1].kind, RECENT_LOAD);
    assert_int_equal(all[2].kind, RECENT_LOAD);
    assert_string_equal(all[3].model, "");
    mem_free(all);
    recent_free(r);
    front_metrics_model_left(id);
}

static unsigned entries_of(const struct recent_failure *all, size_t count, const char *model)
{
    unsigned n = 0;
    for (size_t i = 0; i < count; i++)
        n += strcmp(all[i].model, model) == 0;
    return n;
}

/* However many different failures one model has, those of others stay; however many models fail,
 * there is a limit, and the oldest goes. */
static void none_crowds_out_the_others(void **state)
{
    (void)state;
    struct recent *r = recent_new();
    char text[32];
    recent_load(r, "quiet", 1, "the one failure of a model");
    for (int i = 0; i < 1000; i++) {
        snprintf(text, sizeof(text), "failure %d", i);
        recent_request(r, 0, text);
    }
    struct recent_failure *all;
    size_t count = recent_read(r, &all);
    assert_int_equal(count, RECENT_OF_MODEL + 1);
    assert_string_equal(all[0].text, "failure 999");
    assert_string_equal(all[RECENT_OF_MODEL - 1].text, "failure 992");
    assert_int_equal(entries_of(all, count, "quiet"), 1);
    mem_free(all);
    for (unsigned i = 0; i < RECENT_MOST; i++) {
        snprintf(text, sizeof(text), "model %u", i);
        recent_load(r, text, 0, "it does not load");
    }
    count = recent_read(r, &all);
    assert_int_equal(count, RECENT_MOST);
    assert_int_equal(entries_of(all, count, "quiet"), 0);
    assert_int_equal(entries_of(all, count, "model 0"), 1);
    mem_free(all);
    recent_free(r);
}

/* Cut where a character ends, with what was put before it. */
static void long_texts_are_cut(void **state)
{
    (void)state;
    struct recent *r = recent_new();
    char text[2 * RECENT_TEXT_BYTES];
    for (size_t i = 0; i + 1 < sizeof(text); i += 2)
        memcpy(text + i, "\xc3\xa4", 2);
    text[sizeof(text) - 2] = '\0';
    recent_load(r, text, 0, text);
    recent_load(r, "m", 1, text);
    struct recent_failure *all;
    assert_int_equal(recent_read(r, &all), 2);
    size_t before = strlen("version 1: ");
    assert_int_equal(strlen(all[0].text), before + ((RECENT_TEXT_BYTES - before - 1) & ~1u));
    assert_memory_equal(all[0].text + before, text, strlen(all[0].text) - before);
    assert_int_equal(strlen(all[1].text), RECENT_TEXT_BYTES - 2);
    assert_int_equal(strlen(all[1].model), RECENT_MODEL_BYTES - 2);
    mem_free(all);
    recent_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_came),
        cmocka_unit_test(repeats_are_counted),
        cmocka_unit_test(none_crowds_out_the_others),
        cmocka_unit_test(long_texts_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
