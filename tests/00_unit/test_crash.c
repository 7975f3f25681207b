#include "os/process/crash.h"

#include "base/log.h"
#include "support/unit.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static char line[1024];

/* What crash_line writes to the standard error. */
static void write_line(int number)
{
    int fds[2];
    int kept = dup(STDERR_FILENO);
    assert_int_equal(pipe(fds), 0);
    dup2(fds[1], STDERR_FILENO);
    crash_line("1.2.3", number);
    dup2(kept, STDERR_FILENO);
    ssize_t n = read(fds[0], line, sizeof(line) - 1);
    assert_true(n > 0);
    line[n] = '\0';
    close(fds[0]);
    close(fds[1]);
    close(kept);
}

static void says_what_was_under_way(void **state)
{
    (void)state;
    char want[256];
    prctl(PR_SET_NAME, "loop-7");
    log_context("", 0);
    write_line(SIGSEGV);
    snprintf(want, sizeof(want),
             "nereid 1.2.3 crashed: signal 11 (SIGSEGV), process %d, thread loop-7\n", getpid());
    assert_string_equal(line, want);
    log_context("a\nb", 3);
    write_line(SIGABRT);
    snprintf(want, sizeof(want),
             "nereid 1.2.3 crashed: signal 6 (SIGABRT), process %d, thread loop-7, request id a?b, "
             "first of a batch of 3\n",
             getpid());
    assert_string_equal(line, want);
    struct log_work none = log_work_set((struct log_work){"executing", "model 'm', version 2"});
    write_line(SIGABRT);
    assert_non_null(
        strstr(line, ", thread loop-7, executing model 'm', version 2, request id a?b"));
    log_work_set(none);
    log_context("", 1);
    write_line(SIGBUS);
    assert_non_null(strstr(line, ", thread loop-7, request id <id_unknown>\n"));
    log_context("", 0);
}

UNIT_MAIN(cmocka_unit_test(says_what_was_under_way))
