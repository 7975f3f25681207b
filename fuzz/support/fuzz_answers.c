#include "support/fuzz_answers.h"

#include "base/check.h"
#include "base/strbuf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

static void check_json(const char *text, size_t len, enum fuzz_answers_json json)
{
    const yyjson_read_flag loose =
        YYJSON_READ_ALLOW_INF_AND_NAN | YYJSON_READ_ALLOW_INVALID_UNICODE;
    yyjson_doc *doc = yyjson_read(text, len, json == FUZZ_ANSWERS_LOOSE ? loose : 0);
    CHECK(doc && yyjson_is_obj(yyjson_doc_get_root(doc)));
    yyjson_doc_free(doc);
}

/* Each is one line "data: {...}" and an empty one. */
static void check_events(const char *text, size_t len, enum fuzz_answers_json json)
{
    const char *end = text + len;
    while (text < end) {
        const char *stop = memmem(text, (size_t)(end - text), "\n\n", 2);
        CHECK(stop);
        size_t line = (size_t)(stop - text);
        CHECK(!memchr(text, '\n', line) && !memchr(text, '\r', line));
        if (!(line == 1 && *text == ':')) {
            CHECK(line > 6 && memcmp(text, "data: ", 6) == 0);
            bool done =
                json == FUZZ_ANSWERS_STRICT && line == 12 && memcmp(text + 6, "[DONE]", 6) == 0;
            if (!done)
                check_json(text + 6, line - 6, json);
        }
        text = stop + 2;
    }
}

/* Returns the end of the chunks, and their text. */
static const char *join_chunks(const char *at, const char *end, struct strbuf *text)
{
    for (;;) {
        char *line;
        size_t size = strtoul(at, &line, 16);
        CHECK(line > at && end - line >= 2 && memcmp(line, "\r\n", 2) == 0);
        at = line + 2;
        CHECK((size_t)(end - at) >= size + 2 && memcmp(at + size, "\r\n", 2) == 0);
        strbuf_append(text, at, size);
        at += size + 2;
        if (!size)
            return at;
    }
}

/* One answer; returns its end. */
static const char *check_answer(const char *at, const char *end, enum fuzz_answers_json json)
{
    CHECK(end - at > 12 && memcmp(at, "HTTP/1.", 7) == 0);
    const char *body = memmem(at, (size_t)(end - at), "\r\n\r\n", 4);
    CHECK(body);
    body += 4;
    size_t head = (size_t)(body - at);
    const char *length = memmem(at, head, "Content-Length: ", 16);
    if (length) {
        size_t size = strtoul(length + 16, NULL, 10);
        CHECK((size_t)(end - body) >= size);
        if (size)
            check_json(body, size, json);
        return body + size;
    }
    CHECK(memmem(at, head, "text/event-stream", 17));
    if (!memmem(at, head, "chunked", 7)) {
        check_events(body, (size_t)(end - body), json);
        return end;
    }
    struct strbuf text = STRBUF_INIT;
    const char *after = join_chunks(body, end, &text);
    check_events(strbuf_str(&text), text.len, json);
    strbuf_fini(&text);
    return after;
}

void fuzz_answers_check(const struct strbuf *got, enum fuzz_answers_json json)
{
    const char *at = strbuf_str(got), *end = at + got->len;
    while (at < end)
        at = check_answer(at, end, json);
}
