#pragma once
/* Shared by unit tests: cmocka with its headers, and a few checks. */
#include "base/err.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

/* UNIT_MAIN(UNIT(a), UNIT(b)) - the main function of a test program. */
#define UNIT(fn) cmocka_unit_test(fn)
#define UNIT_MAIN(...)                                    \
    int main(void)                                        \
    {                                                     \
        const struct CMUnitTest tests[] = {__VA_ARGS__};  \
        return cmocka_run_group_tests(tests, NULL, NULL); \
    }

/* unit_fails - check that e is an error with this code whose message contains `part`; frees it. */
#define unit_fails(e, code, part) unit_fails_at((e), (code), (part), __FILE__, __LINE__)
void unit_fails_at(struct err *e, enum status code, const char *part, const char *file, int line);

/* unit_succeeds - check that e is NULL. */
#define unit_succeeds(e) unit_succeeds_at((e), __FILE__, __LINE__)
void unit_succeeds_at(struct err *e, const char *file, int line);

/* unit_dies - true if fn(arg) ends the process with abort; runs it in a child process. */
bool unit_dies(void (*fn)(void *arg), void *arg);

/* unit_random - the next random number; *state (any value) is the seed. */
uint64_t unit_random(uint64_t *state);
