/* net/forward: which headers become parameters; net/guard: who may pass. */
#include "net/forward.h"

#include "base/arena.h"
#include "base/strbuf.h"
#include "infer/request.h"
#include "support/unit.h"

#include <stdlib.h>
#include <string.h>

/* The parameters that a pattern makes of headers, as name=value;... */
static void expect(const char *pattern, const char *headers, size_t len, const char *expected)
{
    struct forward *f;
    unit_succeeds(forward_new("pattern", pattern, &f));
    struct request r = {0};
    arena_init(&r.arena, NULL, 0);
    unit_succeeds(forward_add(f, headers, len, &r));
    struct strbuf got = STRBUF_INIT;
    for (const struct param *p = r.params.first; p; p = p->next) {
        assert_int_equal(p->type, PARAM_STRING);
        assert_int_equal(strlen(p->bytes.data), p->bytes.len);
        strbuf_printf(&got, "%s=%s;", p->name, p->bytes.data);
    }
    assert_string_equal(strbuf_str(&got), expected);
    strbuf_fini(&got);
    arena_fini(&r.arena);
    forward_free(f);
}

#define HEADERS                   "X-One\0first\0x-two\0\0Other\0one\0"
#define EXPECT(pattern, expected) expect((pattern), HEADERS, sizeof(HEADERS) - 1, (expected))

static void names_are_searched(void **state)
{
    (void)state;
    EXPECT("x-", "X-One=first;x-two=;");
    EXPECT("(?-i)x-", "x-two=;");
    EXPECT("^X", "X-One=first;x-two=;");
    EXPECT("one$", "X-One=first;");
    EXPECT("first", "");
    EXPECT(".*", "X-One=first;x-two=;Other=one;");
    EXPECT("", "");
    EXPECT(NULL, "");
    expect(".*", NULL, 0, "");
}

static void names_with_a_meaning(void **state)
{
    (void)state;
    static const char *const names[] = {
        "sequence_id", "sequence_start", "sequence_end", "priority",
        "timeout",     "headers",        "triton_any",   "binary_data_output",
        "Timeout",     "PRIORITY",       "Triton_Any",   "Sequence_Id"};
    struct forward *f;
    unit_succeeds(forward_new("pattern", ".", &f));
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        char headers[64] = {0};
        memcpy(headers, names[i], strlen(names[i]));
        struct request r = {0};
        arena_init(&r.arena, NULL, 0);
        unit_fails(forward_add(f, headers, strlen(names[i]) + 2, &r), STATUS_INVALID_ARG,
                   "reserved for Triton usage");
        arena_fini(&r.arena);
    }
    forward_free(f);
}

/* A pattern that would run for ages counts as none. */
static void matching_has_a_limit(void **state)
{
    (void)state;
    char headers[4096];
    memset(headers, 'a', sizeof(headers));
    headers[sizeof(headers) - 2] = headers[sizeof(headers) - 1] = '\0';
    expect("(a+)+b|(a*)*c", headers, sizeof(headers), "");
}

static void broken_patterns(void **state)
{
    (void)state;
    struct forward *f;
    unit_fails(forward_new("some-pattern", "a(b", &f), STATUS_INVALID_ARG,
               "option --some-pattern: expected a regular expression, found 'a(b'");
    unit_fails(forward_new("some-pattern", "*", &f), STATUS_INVALID_ARG, "at character");
}

UNIT_MAIN(UNIT(names_are_searched), UNIT(names_with_a_meaning), UNIT(matching_has_a_limit),
          UNIT(broken_patterns))
