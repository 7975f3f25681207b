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

/* Appends a text; characters that could forge a line become '?'. */
static void crash_put(struct line *l, const char *s)
{
    for (; *s && l->len < sizeof(l->text) - 1; s++)
        l->text[l->len++] = (unsigned char)(*s - ' ') < 0x7f - ' ' ? *s : '?';
}

static void crash_put_number(struct line *l, unsigned long n)
{
    char digits[24];
    size_t at = sizeof(digits);
    digits[--at] = '\0';
    do
        digits[--at] = (char)('0' + n % 10);
    while ((n /= 10) != 0);
    crash_put(l, digits + at);
}

void crash_line(const char *version, int signal_number)
{
    struct line l = {.len = 0};
    char thread[17] = {0};
    const char *id;
    uint32_t requests;
    struct log_work work = log_work_get();
    prctl(PR_GET_NAME, thread);
    log_context_get(&id, &requests);
    const char *name = sigabbrev_np(signal_number);
    crash_put(&l, "nereid ");
    crash_put(&l, version);
    crash_put(&l, " crashed: signal ");
    crash_put_number(&l, (unsigned long)signal_number);
    crash_put(&l, " (SIG");
    crash_put(&l, name ? name : "?");
    crash_put(&l, "), process ");
    crash_put_number(&l, (unsigned long)getpid());
    crash_put(&l, ", thread ");
    crash_put(&l, thread);
    if (work.what) {
        crash_put(&l, ", ");
        crash_put(&l, work.what);
        crash_put(&l, " ");
        crash_put(&l, work.model);
    }
    if (requests) {
        crash_put(&l, ", request id ");
        crash_put(&l, *id ? id : "<id_unknown>");
    }
    if (requests > 1) {
        crash_put(&l, ", first of a batch of ");
        crash_put_number(&l, requests);
    }
    l.text[l.len++] = '\n';
    ssize_t ignored = write(STDERR_FILENO, l.text, l.len);
    (void)ignored;
}
