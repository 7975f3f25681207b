#pragma once
/* Checks that stay on in release: a failed one is a bug of ours, never an answer to bad input. */

/* check_failed - print what failed and where, then abort. Does not return. Any thread. */
__attribute__((noreturn, cold)) void check_failed(const char *file, int line, const char *what);

#define CHECK(cond) ((cond) ? (void)0 : check_failed(__FILE__, __LINE__, #cond))

/* A magic number in an object that crosses a void pointer or the ABI; checked in every build. */
#define CHECK_MAGIC(obj, number) CHECK((obj) && (obj)->magic == (number))
