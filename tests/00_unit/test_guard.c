/* net/guard.c and net/keys.c: which headers open what. */
#include "net/guard.h"

#include "base/strbuf.h"
#include "os/files/file.h"
#include "support/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static enum guard_answer ask(const struct guard *g, enum options_category category,
                             const char *name, const char *value)
{
    struct guard_seen seen = {0};
    if (name)
        guard_header(g, category, &seen, name, strlen(name), value, strlen(value));
    return guard_decide(g, category, &seen);
}

static void restrictions(void **state)
{
    (void)state;
    struct options_restrictions r = {0};
    struct guard g = {.restrictions = &r, .prefix = "pre-", .what = "API"};
    assert_false(guard_watches(&g, OPTIONS_CATEGORY_HEALTH));
    assert_int_equal(ask(&g, OPTIONS_CATEGORY_HEALTH, NULL, NULL), GUARD_PASS);
    r.any = true;
    r.of[OPTIONS_CATEGORY_HEALTH] =
        (struct options_restriction){.header = "key", .value = "secret"};
    static const char *const wrong[] = {"", "s", "secre", "secrett", "SECRET", "tecret", "secreu"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        assert_int_equal(ask(&g, OPTIONS_CATEGORY_HEALTH, "pre-key", wrong[i]), GUARD_RESTRICTED);
    assert_int_equal(ask(&g, OPTIONS_CATEGORY_HEALTH, NULL, NULL), GUARD_RESTRICTED);
    assert_int_equal(ask(&g, OPTIONS_CATEGORY_HEALTH, "key", "secret"), GUARD_RESTRICTED);
    assert_int_equal(ask(&g, OPTIONS_CATEGORY_HEALTH, "Pre-Key", "secret"), GUARD_PASS);
    assert_int_equal(ask(&g, OPTIONS_CATEGORY_TRACE, NULL, NULL), GUARD_PASS);
    assert_int_equal(ask(&g, OPTIONS_CATEGORY_METRICS, NULL, NULL), GUARD_PASS);
    assert_int_equal(ask(&g, OPTIONS_CATEGORY_NONE, NULL, NULL), GUARD_PASS);
    struct guard_seen seen = {0};
    guard_header(&g, OPTIONS_CATEGORY_HEALTH, &seen, "pre-key", 7, "secret\0x", 8);
    assert_true(seen.wrong);
    guard_header(&g, OPTIONS_CATEGORY_HEALTH, &seen, "pre-key", 7, "secret", 6);
    assert_int_equal(guard_decide(&g, OPTIONS_CATEGORY_HEALTH, &seen), GUARD_RESTRICTED);
}

static char path[] = "/tmp/nereid-keys-XXXXXX";

static void put_keys(const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static struct keys *load(const char *text)
{
    struct keys *k;
    put_keys(text);
    unit_succeeds(keys_new(path, &k));
    return k;
}

static void keys_open_categories(void **state)
{
    (void)state;
    struct guard g = {.prefix = "", .what = "API"};
    g.keys = load("# who\n\nalice all\r\nbob  inference,metadata\n- health\nprobe\tmetrics");
    const enum options_category infer = OPTIONS_CATEGORY_INFERENCE;
    assert_int_equal(ask(&g, OPTIONS_CATEGORY_HEALTH, NULL, NULL), GUARD_PASS);
    assert_int_equal(ask(&g, infer, NULL, NULL), GUARD_NO_KEY);
    assert_int_equal(ask(&g, infer, "X-API-Key", "alice"), GUARD_PASS);
    assert_int_equal(ask(&g, infer, "authorization", "Bearer alice"), GUARD_PASS);
    assert_int_equal(ask(&g, infer, "Authorization", "bearer  bob"), GUARD_PASS);
    assert_int_equal(ask(&g, infer, "Authorization", "bearer bob \t "), GUARD_PASS);
    assert_int_equal(ask(&g, infer, "x-api-key", "alice \t"), GUARD_PASS);
    assert_int_equal(ask(&g, infer, "x-api-key", " \t"), GUARD_NO_KEY);
    assert_int_equal(ask(&g, infer, "authorization", "alice"), GUARD_NO_KEY);
    assert_int_equal(ask(&g, infer, "authorization", "Basic alice"), GUARD_NO_KEY);
    assert_int_equal(ask(&g, infer, "x-api-key", "alic"), GUARD_NO_KEY);
    assert_int_equal(ask(&g, infer, "x-api-key", "alicee"), GUARD_NO_KEY);
    assert_int_equal(ask(&g, infer, "x-api-key", ""), GUARD_NO_KEY);
    assert_int_equal(ask(&g, infer, "x-api-key", "-"), GUARD_NO_KEY);
    assert_int_equal(ask(&g, infer, "x-api-key", "probe"), GUARD_NOT_ITS);
    assert_int_equal(ask(&g, OPTIONS_CATEGORY_METRICS, "x-api-key", "probe"), GUARD_PASS);
    assert_int_equal(ask(&g, OPTIONS_CATEGORY_METRICS, "x-api-key", "bob"), GUARD_NOT_ITS);
    assert_int_equal(ask(&g, OPTIONS_CATEGORY_NONE, NULL, NULL), GUARD_NO_KEY);
    assert_int_equal(ask(&g, OPTIONS_CATEGORY_NONE, "x-api-key", "probe"), GUARD_PASS);
    assert_true(guard_watches(&g, OPTIONS_CATEGORY_NONE));
    assert_false(guard_watches(&g, OPTIONS_CATEGORY_OPEN));
    struct guard_seen two = {0};
    guard_header(&g, infer, &two, "x-api-key", 9, "alice", 5);
    guard_header(&g, infer, &two, "x-api-key", 9, "bob", 3);
    assert_int_equal(guard_decide(&g, infer, &two), GUARD_PASS);
    guard_header(&g, infer, &two, "authorization", 13, "Bearer mallory", 14);
    assert_int_equal(guard_decide(&g, infer, &two), GUARD_NO_KEY);
    struct options_restrictions r = {.any = true};
    r.of[infer] = (struct options_restriction){.header = "door", .value = "secret"};
    g.restrictions = &r;
    assert_int_equal(ask(&g, infer, "x-api-key", "alice"), GUARD_RESTRICTED);
    assert_int_equal(ask(&g, infer, "door", "secret"), GUARD_NO_KEY);
    keys_free(g.keys);
}

/* A request may have hundreds of headers, and each key is compared with all of the file. */
static void a_few_keys_are_looked_up(void **state)
{
    (void)state;
    struct guard g = {.prefix = "", .what = "API", .keys = load("alice all\n")};
    struct guard_seen seen = {0};
    for (unsigned i = 0; i < GUARD_MOST_KEYS; i++) {
        guard_header(&g, OPTIONS_CATEGORY_INFERENCE, &seen, "x-api-key", 9, "alice", 5);
        assert_int_equal(guard_decide(&g, OPTIONS_CATEGORY_INFERENCE, &seen), GUARD_PASS);
    }
    guard_header(&g, OPTIONS_CATEGORY_INFERENCE, &seen, "x-api-key", 9, "alice", 5);
    assert_int_equal(guard_decide(&g, OPTIONS_CATEGORY_INFERENCE, &seen), GUARD_NO_KEY);
    keys_free(g.keys);
}

static void broken_files(void **state)
{
    (void)state;
    static const struct {
        const char *text, *said;
    } broken[] = {
        {"alice", ":1: expected a key and its categories, two words"},
        {"\nalice all more\n", ":2: expected a key and its categories, two words"},
        {"alice everything\n", ":1: expected all, or categories of health,"},
        {"alice health,\n", "found ''"},
        {"alice all\nalice health\n", ":2: a key that an earlier line has"},
        {"", ": expected lines of a key and its categories, or of -"},
        {"# nobody\n \r\n\n", ": expected lines of a key and its categories, or of -"},
    };
    struct keys *k;
    for (size_t i = 0; i < sizeof(broken) / sizeof(*broken); i++) {
        put_keys(broken[i].text);
        unit_fails(keys_new(path, &k), STATUS_INVALID_ARG, broken[i].said);
    }
    struct strbuf long_key = STRBUF_INIT;
    for (unsigned i = 0; i <= KEYS_MAX_BYTES; i++)
        strbuf_putc(&long_key, 'k');
    strbuf_append(&long_key, " all", 4);
    put_keys(strbuf_str(&long_key));
    unit_fails(keys_new(path, &k), STATUS_INVALID_ARG, "a key of more than 256 bytes");
    strbuf_fini(&long_key);
    struct strbuf many = STRBUF_INIT;
    for (unsigned i = 0; i <= KEYS_MAX; i++)
        strbuf_printf(&many, "key%u all\n", i);
    put_keys(strbuf_str(&many));
    unit_fails(keys_new(path, &k), STATUS_INVALID_ARG, ":1001: more than 1000 keys");
    strbuf_fini(&many);
    unit_fails(keys_new("/nonexistent/keys", &k), STATUS_NOT_FOUND, "option --api-keys: opening");
}

/* Once a file has changed and is at rest; a broken one changes nothing. */
static void files_that_change(void **state)
{
    (void)state;
    struct keys *k = load("alice all\n");
    put_keys("carol all and more\n");
    keys_look(k, true);
    assert_int_equal(keys_rights_of(k, "alice", 5), KEYS_ALL);
    put_keys("");
    keys_look(k, true);
    assert_int_equal(keys_rights_of(k, "alice", 5), KEYS_ALL);
    put_keys("carol health\n");
    keys_look(k, false);
    assert_int_equal(keys_rights_of(k, "alice", 5), KEYS_ALL);
    keys_look(k, false);
    assert_int_equal(keys_rights_of(k, "alice", 5), 0);
    assert_int_equal(keys_rights_of(k, "carol", 5), KEYS_RIGHT(OPTIONS_CATEGORY_HEALTH));
    keys_free(k);
    unlink(path);
}

/* Made before everything else. */
static void a_place_for_keys(void **state)
{
    (void)state;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
}

UNIT_MAIN(UNIT(restrictions), UNIT(a_place_for_keys), UNIT(keys_open_categories),
          UNIT(a_few_keys_are_looked_up), UNIT(broken_files), UNIT(files_that_change))
