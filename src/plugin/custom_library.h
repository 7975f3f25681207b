#pragma once
/* The shared library of a custom backend of the first generation (include/triton/core/custom.h). */
#include "base/err.h"
#include "triton/core/custom.h"

#include <stdint.h>

struct custom_library {
    struct dl *dl;
    uint32_t version; /* 1 or 2 */
    CustomInitializeFn_t initialize;
    CustomFinalizeFn_t finalize;
    CustomErrorStringFn_t error_string;
    CustomExecuteFn_t execute;      /* version 1 */
    CustomExecuteV2Fn_t execute_v2; /* version 2 */
};

/* custom_library_open - load a library.
 * errors  INTERNAL from the dynamic loader; NOT_FOUND: a function is missing; INVALID_ARG: an
 *         unknown version */
struct err *custom_library_open(const char *path, struct custom_library **ret);

/* custom_library_close - unmap it. NULL is fine. */
void custom_library_close(struct custom_library *l);

/* custom_library_words - the library's text for an error code; never NULL. */
const char *custom_library_words(const struct custom_library *l, void *context, int code);
