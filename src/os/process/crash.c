#include "os/process/crash.h"

#include "base/log.h"

#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

struct line {
    char text[512];
    size_t len;
};

/* Characters that could forge a line become '?'. */
static void put(struct line *l, const char *s)
{
    for (; *s && l->len < sizeof(l->text) - 1; s++)
        l->text[l->len++] = (unsigned char)(*s - ' ') < 0x7f - ' ' ? *s : '?';
}

static void put_number(struct line *l, unsigned long n)
{
    char digits[24];
    size_t at = sizeof(digits);
    digits[--at] = '\0';
    do
        digits[--at] = (char)('0' + n % 10);
    while ((n /= 10) != 0);
    put(l, digits + at);
}

void crash_line(const char *version, int signal_number)
{
    struct line l = {.len = 0};
    char thread[17] = {0};
    const char *id;
    uint32_t requests;
    prctl(PR_GET_NAME, thread);
    log_context_get(&id, &requests);
    const char *name = sigabbrev_np(signal_number);
    put(&l, "nereid ");
    put(&l, version);
    put(&l, " crashed: signal ");
    put_number(&l, (unsigned long)signal_number);
    put(&l, " (SIG");
    put(&l, name ? name : "?");
    put(&l, "), process ");
    put_number(&l, (unsigned long)getpid());
    put(&l, ", thread ");
    put(&l, thread);
    if (requests) {
        put(&l, ", request id ");
        put(&l, *id ? id : "<id_unknown>");
    }
    if (requests > 1) {
        put(&l, ", first of a batch of ");
        put_number(&l, requests);
    }
    l.text[l.len++] = '\n';
    ssize_t ignored = write(STDERR_FILENO, l.text, l.len);
    (void)ignored;
}
