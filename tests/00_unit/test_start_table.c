#include "server/start_table.h"

#include "base/mem.h"
#include "serve/table.h"
#include "support/unit.h"

#include <string.h>

static struct table_entry entry(int64_t number, enum table_state state, const char *reason)
{
    return (struct table_entry){.number = number, .state = state, .reason = mem_strdup(reason)};
}

static void publish(struct serve_table *t)
{
    struct table_model *models = mem_zalloc(3 * sizeof(*models));
    models[0] = (struct table_model){.name = mem_strdup("m"),
                                     .entries = mem_zalloc(3 * sizeof(struct table_entry))};
    models[0].entries[0] = entry(1, TABLE_LOADING, "");
    models[0].entries[1] = entry(12, TABLE_UNAVAILABLE, "Internal: two\nlines\x7f\xc2\x9b\x9b.");
    models[0].entries[2] = entry(13, TABLE_LOADING, "");
    models[0].entry_count = models[0].latest = 3;
    models[1] = (struct table_model){.name = mem_strdup("none"), .wanted = true};
    models[2] = (struct table_model){.name = mem_strdup("nobody asked for it")};
    table_publish(t, models, 3);
}

static void shows_states(void **state)
{
    (void)state;
    struct serve_table *t = table_new();
    struct table_view view;
    table_view_open(&view, t, NULL);
    char *text = start_table_text(&view);
    assert_string_equal(text, "+-------+---------+--------+\n"
                              "| Model | Version | Status |\n"
                              "+-------+---------+--------+\n"
                              "+-------+---------+--------+\n");
    mem_free(text);
    assert_null(start_table_loading(&view));
    publish(t);
    text = start_table_text(&view);
    assert_string_equal(text, "+-------+---------+----------------------------------------+\n"
                              "| Model | Version | Status                                 |\n"
                              "+-------+---------+----------------------------------------+\n"
                              "| m     | 1       | LOADING                                |\n"
                              "| m     | 12      | UNAVAILABLE: Internal: two lines    .  |\n"
                              "| m     | 13      | LOADING                                |\n"
                              "| none  | -       | Not loaded: No model version was found |\n"
                              "+-------+---------+----------------------------------------+\n");
    mem_free(text);
    text = start_table_loading(&view);
    assert_string_equal(text, "m:1, m:13");
    mem_free(text);
    table_view_close(&view);
    table_free(t);
}

UNIT_MAIN(cmocka_unit_test(shows_states))
