/* Compressed gRPC messages: the limit holds whatever the stream says. The first byte chooses the encoding, the second the limit. */
#include "base/check.h"
#include "codec/grpc_inflate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    enum grpc_inflate_encoding encoding = data[0] & 1 ? GRPC_INFLATE_GZIP : GRPC_INFLATE_DEFLATE;
    size_t limit = (size_t)1 << (data[1] % 22);
    struct buf *buf = NULL;
    size_t bytes = 0;
    struct err *e = grpc_inflate(encoding, data + 2, size - 2, limit, &buf, &bytes);
    CHECK((e != NULL) == (buf == NULL));
    CHECK(bytes <= limit);
    if (buf)
        CHECK(bytes <= buf->size);
    buf_unref(buf);
    err_free(e);
    return 0;
}
