/* generate and generate_stream, whole: the input is the body of a question, or of several on one
 * connection. Of the first byte bit 0 chooses the stream, bits 1 to 3 the model, bit 4 HTTP/1.0,
 * bit 5 that the body is sent twice, bit 6 that the client is gone before its answer; the second
 * byte is the size of the pieces. Whatever is asked, each answer is whole: JSON with a length, or
 * events of JSON whose chunks end. */
#include "base/check.h"
#include "base/strbuf.h"
#include "support/fuzz_http.h"
#include "support/fuzz_server.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <yyjson.h>

/* Strings of a model that are no UTF-8 come as they are, and NaN by its name. */
static void check_json(const char *text, size_t len)
{
    yyjson_doc *doc =
        yyjson_read(text, len, YYJSON_READ_ALLOW_INF_AND_NAN | YYJSON_READ_ALLOW_INVALID_UNICODE);
    CHECK(doc && yyjson_is_obj(yyjson_doc_get_root(doc)));
    yyjson_doc_free(doc);
}

/* Each is one line "data: {...}" and an empty one. */
static void check_events(const char *text, size_t len)
{
    const char *end = text + len;
    while (text < end) {
        const char *stop = memmem(text, (size_t)(end - text), "\n\n", 2);
        CHECK(stop);
        size_t line = (size_t)(stop - text);
        CHECK(!memchr(text, '\n', line) && !memchr(text, '\r', line));
        if (!(line == 1 && *text == ':')) {
            CHECK(line > 6 && memcmp(text, "data: ", 6) == 0);
            check_json(text + 6, line - 6);
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
static const char *check_answer(const char *at, const char *end)
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
            check_json(body, size);
        return body + size;
    }
    CHECK(memmem(at, head, "text/event-stream", 17));
    if (!memmem(at, head, "chunked", 7)) {
        check_events(body, (size_t)(end - body));
        return end;
    }
    struct strbuf text = STRBUF_INIT;
    const char *after = join_chunks(body, end, &text);
    check_events(strbuf_str(&text), text.len);
    strbuf_fini(&text);
    return after;
}

static void check_answers(const struct strbuf *got)
{
    const char *at = strbuf_str(got), *end = at + got->len;
    while (at < end)
        at = check_answer(at, end);
}

static void ask(struct fuzz_client *c, uint8_t how, uint8_t piece, const uint8_t *body, size_t size)
{
    static const char models[][4] = {"d", "s", "m", "b", "t", "d", "d", "x"};
    struct strbuf question = STRBUF_INIT;
    for (int i = 0; i <= (how >> 5 & 1); i++) {
        strbuf_printf(&question, "POST /v2/models/%s/generate%s HTTP/1.%d\r\nHost: a\r\n",
                      models[how >> 1 & 7], how & 1 ? "_stream" : "", how & 16 ? 0 : 1);
        strbuf_printf(&question, "Content-Length: %zu\r\n\r\n", size);
        strbuf_append(&question, body, size);
    }
    fuzz_server_send(c, question.data, question.len, piece);
    strbuf_fini(&question);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3)
        return 0;
    fuzz_http_front();
    fuzz_server_fresh();
    int fd;
    struct strbuf got = STRBUF_INIT;
    struct fuzz_client c = {.fd = fuzz_server_open(&fd), .all = &got};
    fuzz_http_serve(fd);
    ask(&c, data[0], data[1], data + 2, size - 2);
    bool gone = data[0] & 64;
    if (gone)
        close(c.fd);
    else
        fuzz_server_read_all(&c);
    fuzz_http_settle();
    if (!gone)
        check_answers(&got);
    strbuf_fini(&got);
    return 0;
}
