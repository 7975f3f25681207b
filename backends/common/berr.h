#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "triton/core/tritonserver.h"

/* Errors of a backend. */

/* berr_new - make an error with a formatted text.
 * fmt      printf format
 * returns  an error owned by the caller; never NULL */
TRITONSERVER_Error *berr_new(TRITONSERVER_Error_Code code, const char *fmt, ...)
    __attribute__((format(printf, 2, 3), returns_nonnull));

/* berr_newv - the same with the arguments in a list. */
TRITONSERVER_Error *berr_newv(TRITONSERVER_Error_Code code, const char *fmt, va_list args)
    __attribute__((format(printf, 2, 0), returns_nonnull));

/* berr_no_memory - make the error for an allocation that failed. */
TRITONSERVER_Error *berr_no_memory(void) __attribute__((returns_nonnull));

/* berr_about - put what an error is about in front of its text, as "ABOUT: text".
 * err      freed; NULL is allowed
 * fmt      printf format
 * returns  an error with the same code; NULL for NULL */
TRITONSERVER_Error *berr_about(TRITONSERVER_Error *err, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Names that an error lists, as "a, b". Begins as zeros. */
struct berr_names {
    char text[1024];
    size_t used;
    bool cut; /* the last one, between characters: the rest is left out */
};

/* berr_names_add - list one more.
 * name  UTF-8 */
void berr_names_add(struct berr_names *names, const char *name);

/* berr_drop - free an error that is not reported; NULL is allowed. */
void berr_drop(TRITONSERVER_Error *err);

/* berr_log - log an error as "what: text" and free it; NULL is allowed and logs nothing. */
void berr_log(TRITONSERVER_Error *err, const char *what);
