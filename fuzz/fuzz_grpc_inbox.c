/* The messages of a gRPC call, cut into frames of a size that the first byte chooses. The same
 * bytes must come out for every size. */
#include "base/budget.h"
#include "base/check.h"
#include "base/strbuf.h"
#include "grpc/grpc_inbox.h"

#include <string.h>

/* All messages, one after the other; if the call ends early, then "!" and the reason. */
static struct strbuf read_all(const uint8_t *data, size_t size, size_t piece, bool tensors,
                              bool keep)
{
    struct strbuf seen = STRBUF_INIT;
    struct grpc_inbox in = {0};
    enum grpc_inbox_result r = GRPC_INBOX_MORE;
    for (size_t at = 0; at < size && (r == GRPC_INBOX_MORE || r == GRPC_INBOX_WHOLE); at += piece) {
        const uint8_t *bytes = data + at;
        size_t len = size - at < piece ? size - at : piece;
        do {
            struct err *e = NULL;
            const uint8_t *before = bytes;
            size_t had = len;
            r = grpc_inbox_feed(&in, NULL, &bytes, &len, GRPC_INBOX_MAX_BYTES, tensors, &e);
            CHECK(bytes >= before && had - len == (size_t)(bytes - before));
            CHECK((r == GRPC_INBOX_NO_ROOM) == (e != NULL));
            err_free(e);
            if (r == GRPC_INBOX_MORE)
                CHECK(len == 0);
            if (r != GRPC_INBOX_WHOLE)
                break;
            CHECK(grpc_inbox_left(&in) == 0);
            if (keep)
                CHECK(!grpc_inbox_keep(&in, NULL));
            strbuf_printf(&seen, "[%d %u]", in.compressed, in.size);
            if (in.size)
                strbuf_append(&seen, in.data, in.size);
            grpc_inbox_next(&in);
        } while (len);
    }
    if (r == GRPC_INBOX_TOO_LARGE || r == GRPC_INBOX_BAD)
        strbuf_printf(&seen, "!%d", r);
    grpc_inbox_next(&in);
    return seen;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    /* a message may announce a large size, which is allocated at once */
    budget_set_limit((uint64_t)16 << 20);
    size_t piece = (size_t)(data[0] >> 2) + 1;
    struct strbuf whole = read_all(data + 1, size - 1, size, data[0] & 1, false);
    struct strbuf pieces = read_all(data + 1, size - 1, piece, data[0] & 1, data[0] & 2);
    /* In pieces, a message that is announced and never complete may be refused for its size; so
     * only the common part is compared. */
    size_t n = whole.len < pieces.len ? whole.len : pieces.len;
    CHECK(n == 0 || memcmp(whole.data, pieces.data, n) == 0);
    strbuf_fini(&whole);
    strbuf_fini(&pieces);
    return 0;
}
