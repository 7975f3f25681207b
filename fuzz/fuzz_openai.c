/* OpenAI's interface, whole: the input is the body of a question, or of two on one connection. Of
 * the first byte bits 0 and 1 choose the route, bit 4 HTTP/1.0, bit 5 that the body is sent twice,
 * bit 6 that the client is gone before its answer; the second byte is the size of the pieces.
 * Whatever is asked, each answer is whole, and its JSON is that of RFC 8259. */
#include "http/openai/openai.h"

#include "base/strbuf.h"
#include "support/fuzz_answers.h"
#include "support/fuzz_http.h"
#include "support/fuzz_server.h"

#include <unistd.h>

static void ask(struct fuzz_client *c, uint8_t how, uint8_t piece, const uint8_t *body, size_t size)
{
    static const char *const routes[] = {"POST /v1/completions", "POST /v1/chat/completions",
                                         "POST /v1/embeddings", "GET /v1/models"};
    struct strbuf question = STRBUF_INIT;
    for (int i = 0; i <= (how >> 5 & 1); i++) {
        strbuf_printf(&question, "%s HTTP/1.%d\r\nHost: a\r\n", routes[how & 3], how & 16 ? 0 : 1);
        strbuf_printf(&question, "Content-Length: %zu\r\n\r\n", size);
        strbuf_append(&question, body, size);
    }
    fuzz_server_send(c, question.data, question.len, piece);
    strbuf_fini(&question);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    static struct http_front *front;
    if (!front)
        front = fuzz_http_open(&openai_service);
    fuzz_server_fresh();
    int fd;
    struct strbuf got = STRBUF_INIT;
    struct fuzz_client c = {.fd = fuzz_server_open(&fd), .all = &got};
    fuzz_http_serve_at(front, fd);
    ask(&c, data[0], data[1], data + 2, size - 2);
    bool gone = data[0] & 64;
    if (gone)
        close(c.fd);
    else
        fuzz_server_read_all(&c);
    fuzz_http_settle();
    if (!gone)
        fuzz_answers_check(&got, FUZZ_ANSWERS_STRICT);
    strbuf_fini(&got);
    return 0;
}
