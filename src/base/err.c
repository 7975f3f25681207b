#include "base/err.h"

#include "base/check.h"
#include "base/log_text.h"
#include "base/mem.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define ERR_MAGIC 0x45525221u

struct err {
    uint32_t magic;
    enum status code;
    bool lent;
    uint16_t retry_secs;
    char message[];
};

static struct err *err_alloc(enum status code, size_t len)
{
    struct err *e = mem_alloc(sizeof(*e) + len + 1);
    e->magic = ERR_MAGIC;
    e->code = code;
    e->lent = false;
    e->retry_secs = 0;
    return e;
}

struct err *err_busy(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    struct err *e = err_vnew(STATUS_UNAVAILABLE, fmt, args);
    va_end(args);
    return err_retry_after(e, ERR_RETRY_SOON);
}

struct err *err_retry_after(struct err *e, uint16_t seconds)
{
    if (e)
        e->retry_secs = seconds;
    return e;
}

uint16_t err_retry_secs(const struct err *e)
{
    CHECK_MAGIC(e, ERR_MAGIC);
    return e->retry_secs;
}

void err_lend(struct err *e)
{
    if (e)
        e->lent = true;
}

bool err_is_lent(const struct err *e)
{
    return e && e->lent;
}

/* Takes `e` over. A message may quote a file, and goes into JSON and into protocol buffers. */
static struct err *err_tame(struct err *e)
{
    const char *at = e->message;
    while (*at && !((unsigned char)*at & 0x80))
        at++;
    if (!*at) /* ASCII, as most are */
        return e;
    char *shown = log_text_shown(e->message);
    if (strcmp(shown, e->message) != 0) {
        struct err *tame = err_alloc(e->code, strlen(shown));
        memcpy(tame->message, shown, strlen(shown) + 1);
        err_free(e);
        e = tame;
    }
    mem_free(shown);
    return e;
}

struct err *err_vnew(enum status code, const char *fmt, va_list args)
{
    va_list again;
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    struct err *e = err_alloc(code, len > 0 ? (size_t)len : 0);
    e->message[0] = '\0';
    if (len > 0)
        vsnprintf(e->message, (size_t)len + 1, fmt, args);
    return err_tame(e);
}

struct err *err_new(enum status code, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    struct err *e = err_vnew(code, fmt, args);
    va_end(args);
    return e;
}

static struct err *err_join(enum status code, const char *head, const char *tail)
{
    size_t head_len = strlen(head);
    size_t tail_len = strlen(tail);
    struct err *e = err_alloc(code, head_len + 2 + tail_len);
    memcpy(e->message, head, head_len);
    memcpy(e->message + head_len, ": ", 2);
    memcpy(e->message + head_len + 2, tail, tail_len + 1);
    return e;
}

struct err *err_errno(int number, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    struct err *head = err_vnew(STATUS_INTERNAL, fmt, args);
    va_end(args);
    char words[128];
    enum status code = number == ENOENT ? STATUS_NOT_FOUND : STATUS_INTERNAL;
    struct err *e = err_join(code, head->message, strerror_r(number, words, sizeof(words)));
    err_free(head);
    return e;
}

struct err *err_wrap(struct err *e, const char *fmt, ...)
{
    if (!e)
        return NULL;
    va_list args;
    va_start(args, fmt);
    struct err *head = err_vnew(e->code, fmt, args);
    va_end(args);
    struct err *both = err_retry_after(err_join(e->code, head->message, e->message), e->retry_secs);
    err_free(head);
    err_free(e);
    return both;
}

struct err *err_recode(struct err *e, enum status code)
{
    if (e)
        e->code = code;
    return e;
}

struct err *err_copy(const struct err *e)
{
    return e ? err_retry_after(err_new(e->code, "%s", e->message), e->retry_secs) : NULL;
}

enum status err_code(const struct err *e)
{
    CHECK_MAGIC(e, ERR_MAGIC);
    return e->code;
}

const char *err_message(const struct err *e)
{
    CHECK_MAGIC(e, ERR_MAGIC);
    return e->message;
}

void err_free(struct err *e)
{
    if (!e)
        return;
    CHECK_MAGIC(e, ERR_MAGIC);
    e->magic = 0;
    mem_free(e);
}
