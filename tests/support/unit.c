#include "support/unit.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

void unit_fails_at(struct err *e, enum status code, const char *part, const char *file, int line)
{
    if (!e) {
        print_error("no error, expected one that says '%s'\n", part);
        _fail(file, line);
    }
    if (err_code(e) != code || !strstr(err_message(e), part)) {
        print_error("error %d '%s', expected %d '%s'\n", (int)err_code(e), err_message(e),
                    (int)code, part);
        _fail(file, line);
    }
    err_free(e);
}

void unit_succeeds_at(struct err *e, const char *file, int line)
{
    if (e) {
        print_error("error %d '%s'\n", (int)err_code(e), err_message(e));
        _fail(file, line);
    }
}

bool unit_dies(void (*fn)(void *arg), void *arg)
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        const struct rlimit no_core = {0, 0};
        setrlimit(RLIMIT_CORE, &no_core);
        signal(SIGABRT, SIG_DFL);
        int null = open("/dev/null", O_WRONLY);
        dup2(null, STDERR_FILENO);
        fn(arg);
        _exit(0);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child)
        return false;
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

uint64_t unit_random(uint64_t *state)
{
    *state += 0x9e3779b97f4a7c15ull;
    uint64_t z = *state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}
