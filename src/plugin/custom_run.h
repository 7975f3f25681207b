#pragma once
/* One execution of a custom backend: requests become payloads, and its callbacks and answers are
 * handled. */
#include "base/err.h"

#include <stddef.h>

struct custom_library;
struct plugin_instance;
struct request;

/* The state of a plugin_instance of a custom backend. */
struct custom_context {
    struct custom_library *library;
    void *own;
};

/* custom_run - as instance_execute.
 * errors  INTERNAL if the library fails the whole batch, with the library's text */
struct err *custom_run(struct plugin_instance *i, struct request **requests, size_t count);
