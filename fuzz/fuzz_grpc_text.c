/* Texts in gRPC headers: timeouts, content types, messages. */
#include "base/check.h"
#include "codec/grpc_text.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    time_ns timeout = TIME_NEVER;
    if (grpc_text_timeout(text, size, &timeout)) {
        CHECK(size >= 2 && size <= 9);
        time_ns n = strtoull(text, NULL, 10);
        bool longest = timeout == GRPC_TEXT_MAX_TIMEOUT;
        CHECK(longest || (timeout >= n && timeout < GRPC_TEXT_MAX_TIMEOUT));
        CHECK(longest || text[size - 1] != 'H' || timeout / TIME_S(3600) == n);
    }
    if (grpc_text_is_grpc(text, size))
        CHECK(size >= strlen("application/grpc"));
    grpc_text_coding(text, size);
    char *message = malloc(size + 1);
    memcpy(message, data, size);
    message[size] = '\0';
    size_t cap = size ? (size_t)data[0] * 4 : 0;
    char *to = malloc(cap + 1);
    to[cap] = '!';
    size_t n = grpc_text_encode(message, to, cap);
    CHECK(n <= cap && to[cap] == '!');
    for (size_t i = 0; i < n; i++)
        CHECK(to[i] >= 0x20 && to[i] <= 0x7E);
    free(to);
    free(message);
    return 0;
}
