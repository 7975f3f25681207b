#pragma once
/* Checks that stay on in release builds. A failed check is a bug of the server; never check
 * input with it. */

/* check_failed - print what failed and where, then abort. Does not return. Any thread. */
__attribute__((noreturn, cold)) void check_failed(const char *file, int line, const char *what);

#define CHECK(cond) ((cond) ? (void)0 : check_failed(__FILE__, __LINE__, #cond))

/* A magic number in objects that cross a void pointer or the ABI; checked in every build. */
#define CHECK_MAGIC(obj, number) CHECK((obj) && (obj)->magic == (number))
