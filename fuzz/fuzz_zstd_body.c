/* A body with zstd, on its way through a whole HTTP connection: whatever it is, one whole answer.
 * Of the first byte bit 0 says that the input is compressed first, bit 1 that it
 * comes in a chunk and bit 2 that the answer may be compressed too; bits 3 to 5 choose the model. The
 * second byte is the size of the pieces. What was compressed here is answered as if it had never
 * been. */
#include "base/check.h"
#include "base/strbuf.h"
#include "codec/shrink.h"
#include "support/fuzz_http.h"
#include "support/fuzz_server.h"

#include <stdlib.h>
#include <string.h>

enum { COMPRESS = 1, CHUNKED = 2, ACCEPT = 4 };

static void put_question(struct strbuf *to, uint8_t how, const char *coding, const void *body,
                         size_t size)
{
    static const char models[][4] = {"m", "b", "s", "t", "d", "m", "s", "x"};
    strbuf_printf(to, "POST /v2/models/%s/infer HTTP/1.1\r\nHost: a\r\n%s%s", models[how >> 3 & 7],
                  coding, how & ACCEPT ? "Accept-Encoding: zstd\r\n" : "");
    if (how & CHUNKED)
        strbuf_printf(to, "Transfer-Encoding: chunked\r\n\r\n%zx\r\n", size);
    else
        strbuf_printf(to, "Content-Length: %zu\r\n\r\n", size);
    strbuf_append(to, body, size);
    if (how & CHUNKED)
        strbuf_puts(to, size ? "\r\n0\r\n\r\n" : "\r\n");
}

static void ask(const struct strbuf *question, uint8_t piece, struct strbuf *got)
{
    int fd;
    struct fuzz_client c = {.fd = fuzz_server_open(&fd), .all = got};
    fuzz_server_fresh();
    fuzz_http_serve(fd);
    fuzz_server_send(&c, question->data, question->len, piece);
    fuzz_server_read_all(&c);
    fuzz_http_settle();
}

static void check_answer(const struct strbuf *got)
{
    const char *text = strbuf_str(got);
    CHECK(got->len > 12 && memcmp(text, "HTTP/1.1 ", 9) == 0);
    const char *body = memmem(text, got->len, "\r\n\r\n", 4);
    const char *length = memmem(text, got->len, "Content-Length: ", 16);
    CHECK(body && length && length < body);
    CHECK(got->len == (size_t)(body + 4 - text) + strtoul(length + 16, NULL, 10));
}

static struct buf *packed(const uint8_t *data, size_t size, size_t *ret_len)
{
    struct iovec piece = {(void *)(uintptr_t)data, size};
    struct shrink *x;
    struct buf *buf;
    CHECK(!shrink_new(&piece, 1, CODING_ZSTD, 0, &x));
    for (bool done = false; !done;)
        CHECK(!shrink_step(x, SIZE_MAX, &done));
    shrink_take(x, &buf, ret_len);
    shrink_free(x);
    return buf;
}

static void compare(uint8_t how, uint8_t piece, const uint8_t *data, size_t size)
{
    struct strbuf plain = STRBUF_INIT, same = STRBUF_INIT, first = STRBUF_INIT,
                  second = STRBUF_INIT;
    size_t len;
    struct buf *buf = packed(data, size, &len);
    put_question(&plain, how, "", data, size);
    put_question(&same, how, "Content-Encoding: zstd\r\n", buf->data, len);
    buf_unref(buf);
    ask(&plain, piece, &first);
    ask(&same, piece, &second);
    check_answer(&first);
    CHECK(first.len == second.len && memcmp(first.data, second.data, first.len) == 0);
    strbuf_fini(&plain);
    strbuf_fini(&same);
    strbuf_fini(&first);
    strbuf_fini(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3)
        return 0;
    fuzz_http_front();
    if (data[0] & COMPRESS) {
        compare(data[0], data[1], data + 2, size - 2);
        return 0;
    }
    struct strbuf question = STRBUF_INIT, got = STRBUF_INIT;
    put_question(&question, data[0], "Content-Encoding: zstd\r\n", data + 2, size - 2);
    ask(&question, data[1], &got);
    check_answer(&got);
    strbuf_fini(&question);
    strbuf_fini(&got);
    return 0;
}
