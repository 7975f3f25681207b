/* Lines of the processes of isolated models in the log of the server. */
#include "isolate/isolate_log.h"

#include "base/log.h"
#include "support/unit.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define FLOOD 5000u

/* What one model says too much of is held back; what another one says is not. */
static void a_flood_drowns_nobody_else(void **state)
{
    (void)state;
    static const char line[] = "{\"level\":\"error\",\"source\":\"a.cc:1\",\"message\":\"again\"}";
    static const char other[] =
        "{\"level\":\"error\",\"source\":\"a.cc:1\",\"message\":\"a word\"}";
    static char text[1 << 20];
    struct log_site first = {0};
    struct log_site second = {0};
    struct log_settings before = log_get();
    struct log_settings s = before;
    int fds[2];
    assert_int_equal(pipe2(fds, O_NONBLOCK | O_CLOEXEC), 0);
    assert_true(fcntl(fds[1], F_SETPIPE_SZ, (int)sizeof(text)) > 0);
    s.fd = fds[1];
    log_set(&s);
    for (unsigned i = 0; i < FLOOD; i++)
        isolate_log_relay(&first, "model 'x'", line, sizeof(line) - 1);
    isolate_log_relay(&second, "model 'y'", other, sizeof(other) - 1);
    log_set(&before);
    ssize_t n = read(fds[0], text, sizeof(text) - 1);
    assert_true(n > 0);
    text[n] = '\0';
    unsigned lines = 0;
    for (const char *at = text; (at = strstr(at, "model 'x': again")); at++)
        lines++;
    assert_true(lines > 0);
    assert_non_null(strstr(text, "model 'y': a word"));
    close(fds[0]);
    close(fds[1]);
}

UNIT_MAIN(UNIT(a_flood_drowns_nobody_else))
