/* serve/table: names to versions, the reference's words for what is not there, and snapshots
 * that live as long as a reader holds one. */
#include "base/mem.h"
#include "infer/response.h"
#include "os/thread.h"
#include "serve/table.h"
#include "serve/version.h"
#include "support/test_version.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char config[] = "name: 'm' backend: 'b' "
                             "input [{ name: 'i' data_type: TYPE_INT32 dims: [ 1 ] }] "
                             "output [{ name: 'o' data_type: TYPE_INT32 dims: [ 1 ] }]";

static TRITONSERVER_Error *never(TRITONBACKEND_ModelInstance *i, TRITONBACKEND_Request **r,
                                 uint32_t n)
{
    (void)i;
    (void)r;
    (void)n;
    return NULL;
}

static struct table_entry entry(int64_t number, enum table_state state, struct serve_version *v)
{
    return (struct table_entry){number, state, mem_strdup(""), v};
}

static struct table_model model(const char *name, struct table_entry *entries, uint32_t count,
                                uint32_t latest)
{
    return (struct table_model){.name = mem_strdup(name),
                                .entries = entries,
                                .entry_count = count,
                                .latest = latest,
                                .places = 1};
}

/* Model "m" with versions 1 (ready), 2 (ready) and 3 (loading); "empty" was never loaded;
 * "broken" has nothing ready. */
static void publish(struct serve_table *t, struct serve_version *v1, struct serve_version *v2)
{
    struct table_model *models = mem_zalloc(3 * sizeof(*models));
    struct table_entry *m = mem_zalloc(3 * sizeof(*m));
    m[0] = entry(1, TABLE_READY, v1);
    m[1] = entry(2, TABLE_READY, v2);
    m[2] = entry(3, TABLE_LOADING, NULL);
    struct table_entry *broken = mem_zalloc(sizeof(*broken));
    broken[0] = entry(1, TABLE_UNAVAILABLE, NULL);
    models[0] = model("m", m, 3, 1);
    models[1] = model("empty", NULL, 0, 0);
    models[2] = model("broken", broken, 1, 1);
    table_publish(t, models, 3);
}

static void refuse(struct table_view *view, const char *name, int64_t number, enum status code,
                   const char *message)
{
    struct serve_version *v;
    struct err *e = table_find(view, name, strlen(name), number, &v);
    assert_non_null(e);
    assert_int_equal(err_code(e), code);
    assert_string_equal(err_message(e), message);
    err_free(e);
}

static void finds_in(struct table_view *view, const char *space, const char *name,
                     const struct serve_version *v)
{
    struct serve_version *found;
    assert_null(table_find_in(view, space, name, -1, &found));
    assert_ptr_equal(found, v);
    version_unpin(found);
}

/* MC-84. */
static void finds_versions(void **state)
{
    (void)state;
    struct plugin_backend backend = test_version_backend(never);
    struct serve_version *v1 = test_version_new(&backend, config, NULL);
    struct serve_version *v2 = test_version_new(&backend, config, NULL);
    struct serve_table *t = table_new();
    struct table_view view;
    table_view_open(&view, t, NULL);
    refuse(&view, "m", -1, STATUS_NOT_FOUND, "Request for unknown model: 'm' is not found");
    publish(t, v1, v2);

    struct serve_version *found;
    assert_null(table_find(&view, "m", 1, -1, &found));
    assert_ptr_equal(found, v2);
    version_unpin(found);
    assert_null(table_find(&view, "m", 1, 1, &found));
    assert_ptr_equal(found, v1);
    version_unpin(found);
    refuse(&view, "m", 3, STATUS_UNAVAILABLE,
           "Request for unknown model: 'm' version 3 is not at ready state");
    refuse(&view, "m", 4, STATUS_NOT_FOUND,
           "Request for unknown model: 'm' version 4 is not found");
    refuse(&view, "x", -1, STATUS_NOT_FOUND, "Request for unknown model: 'x' is not found");
    refuse(&view, "empty", -1, STATUS_NOT_FOUND, "Request for unknown model: 'empty' is not found");
    refuse(&view, "broken", -1, STATUS_NOT_FOUND,
           "Request for unknown model: 'broken' has no available versions");

    uint32_t count;
    const struct table_model *models = table_models(&view, &count);
    assert_int_equal(count, 3);
    assert_string_equal(models[0].name, "broken");
    assert_string_equal(models[2].name, "m");
    finds_in(&view, "", "m", v2);
    table_view_close(&view);
    table_free(t);
    version_free(v1);
    version_free(v2);
}

/* Which namesake a name leads to. */
static struct table_model namesake(const char *space, const char *name, struct serve_version *v,
                                   bool shared)
{
    struct table_entry *entries = mem_zalloc(sizeof(*entries));
    entries[0] = entry(1, v ? TABLE_READY : TABLE_UNAVAILABLE, v);
    struct table_model m = model(name, entries, 1, v ? 0 : 1);
    m.space = space;
    m.title = mem_alloc(strlen(space) + strlen(name) + 3);
    snprintf((char *)(uintptr_t)m.title, strlen(space) + strlen(name) + 3, "%s::%s", space, name);
    m.shared = shared;
    return m;
}

static struct table_model stand_in(const char *name, uint32_t meanings)
{
    return (struct table_model){.name = mem_strdup(name), .stand_in = true, .meanings = meanings};
}

/* "two" is served from /a and /b, "one" from /b while that of /a was never asked for, "left" was
 * unloaded. */
static void publish_apart(struct serve_table *t, struct serve_version *v1, struct serve_version *v2)
{
    struct table_model *models = mem_zalloc(5 * sizeof(*models));
    models[0] = namesake("/b", "two", v2, true);
    models[1] = namesake("/b", "one", v2, false);
    models[2] = namesake("/a", "two", v1, true);
    models[3] = namesake("/a", "one", NULL, true);
    models[4] = namesake("/a", "left", NULL, true);
    struct table_model *names = mem_zalloc(2 * sizeof(*names));
    names[0] = stand_in("two", 2);
    names[1] = stand_in("left", 0);
    table_publish_apart(t, models, 5, names, 2);
}

static void refuse_in(struct table_view *view, const char *space, const char *name,
                      const char *message)
{
    struct serve_version *v;
    struct err *e = table_find_in(view, space, name, -1, &v);
    assert_non_null(e);
    assert_string_equal(err_message(e), message);
    err_free(e);
}

static void tells_namesakes_apart(void **state)
{
    (void)state;
    struct plugin_backend backend = test_version_backend(never);
    struct serve_version *v1 = test_version_new(&backend, config, NULL);
    struct serve_version *v2 = test_version_new(&backend, config, NULL);
    struct serve_table *t = table_new();
    struct table_view view;
    table_view_open(&view, t, NULL);
    publish_apart(t, v1, v2);
    refuse(&view, "two", -1, STATUS_INVALID_ARG,
           "There are 2 identifiers of model 'two' in global map, model namespace must be provided "
           "to resolve ambiguity.");
    refuse(&view, "left", -1, STATUS_NOT_FOUND,
           "Identifier of model 'left' is not found in global map");
    refuse(&view, "x", -1, STATUS_INVALID_ARG, "Request for unknown model: 'x' is not found");
    refuse(&view, "one", 7, STATUS_NOT_FOUND,
           "Request for unknown model: '/b::one' version 7 is not found");
    struct serve_version *found;
    assert_null(table_find(&view, "one", 3, -1, &found));
    assert_ptr_equal(found, v2);
    version_unpin(found);
    finds_in(&view, "/a", "two", v1);
    finds_in(&view, "/b", "two", v2);
    finds_in(&view, "/b", "one", v2);
    refuse_in(&view, "/a", "one", "Request for unknown model: '/a::one' has no available versions");
    refuse_in(&view, "/c", "two", "Request for unknown model: 'two' is not found");
    refuse_in(&view, "", "two", "Request for unknown model: 'two' is not found");
    assert_int_equal(table_model(&view, "two", 3)->entry_count, 0);

    uint32_t count;
    const struct table_model *models = table_models(&view, &count);
    static const char *const order[] = {"/a::left", "/a::one", "/a::two", "/b::one", "/b::two"};
    assert_int_equal(count, 5);
    for (uint32_t i = 0; i < count; i++)
        assert_string_equal(table_title(&models[i]), order[i]);
    table_view_close(&view);
    table_free(t);
    version_free(v1);
    version_free(v2);
}

struct settler {
    struct serve_table *table;
    atomic_bool done;
};

static void settle(void *arg)
{
    struct settler *s = arg;
    table_settle(s->table);
    atomic_store(&s->done, true);
}

/* A reader keeps the old snapshot until it looks again; only then may what was unpublished be
 * freed. */
static void settles_after_the_last_reader(void **state)
{
    (void)state;
    struct serve_table *t = table_new();
    struct table_view view;
    table_view_open(&view, t, NULL);
    publish(t, NULL, NULL);
    assert_non_null(table_model(&view, "m", 1));
    table_publish(t, NULL, 0);
    struct settler s = {.table = t};
    struct thread *thread;
    assert_null(thread_start("settler", settle, &s, &thread));
    assert_false(atomic_load(&s.done));
    assert_null(table_model(&view, "m", 1));
    thread_join(thread);
    assert_true(atomic_load(&s.done));
    table_view_close(&view);
    table_free(t);
}

static void run_loop(void *arg)
{
    loop_run(arg);
}

/* A loop that sleeps is told to let go. */
static void wakes_a_sleeping_loop(void **state)
{
    (void)state;
    struct serve_table *t = table_new();
    struct loop *loop;
    struct thread *thread;
    struct table_view view;
    assert_null(loop_new(&loop));
    table_view_open(&view, t, loop);
    assert_null(thread_start("loop", run_loop, loop, &thread));
    for (int i = 0; i < 100; i++) {
        publish(t, NULL, NULL);
        table_settle(t);
    }
    loop_stop(loop);
    thread_join(thread);
    loop_free(loop);
    table_view_close(&view);
    table_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_versions),
        cmocka_unit_test(tells_namesakes_apart),
        cmocka_unit_test(settles_after_the_last_reader),
        cmocka_unit_test(wakes_a_sleeping_loop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
