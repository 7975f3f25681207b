#include "infer/request_text.h"

#include "base/budget.h"

#include <string.h>

struct err *request_text_id(struct request *r, const char *id, size_t len)
{
    if (len > REQUEST_TEXT_ID_BYTES)
        return err_new(STATUS_INVALID_ARG,
                       "the request id has %zu bytes, which is more than the %zu that are allowed",
                       len, REQUEST_TEXT_ID_BYTES);
    if (len)
        r->id = arena_strndup(&r->arena, id, len);
    return NULL;
}

struct err *request_text_sequence(struct request *r, const char *id, size_t len)
{
    if (len > REQUEST_MAX_CORRELATION)
        return err_new(STATUS_UNSUPPORTED,
                       "string correlation ID cannot be longer than %u characters",
                       REQUEST_MAX_CORRELATION);
    r->correlation_string = arena_strndup(&r->arena, id, len);
    return NULL;
}

struct err *request_text_room(const struct request *r, size_t bytes)
{
    if (budget_account_room(r->arena.account, bytes))
        return NULL;
    return budget_busy(bytes, "no room for %zu bytes of parameters", bytes);
}

size_t request_text_cut(const char *message, size_t most)
{
    size_t n = strnlen(message, most + 1);
    if (n <= most)
        return n;
    n = most;
    while (n > 0 && ((unsigned char)message[n] & 0xC0) == 0x80)
        n--;
    return n;
}

size_t request_text_message(const char *message)
{
    return request_text_cut(message, REQUEST_TEXT_MESSAGE_BYTES);
}
