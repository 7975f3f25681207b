/* generate and generate_stream, whole: the input is the body of a question, or of several on one
 * connection. Of the first byte bit 0 chooses the stream, bits 1 to 3 the model, bit 4 HTTP/1.0,
 * bit 5 that the body is sent twice, bit 6 that the client is gone before its answer; the second
 * byte is the size of the pieces. Whatever is asked, each answer is whole: JSON with a length, or
 * events of JSON whose chunks end. */
#include "base/strbuf.h"
#include "support/fuzz_answers.h"
#include "support/fuzz_http.h"
#include "support/fuzz_server.h"

#include <unistd.h>

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
        fuzz_answers_check(&got, FUZZ_ANSWERS_LOOSE);
    strbuf_fini(&got);
    return 0;
}
