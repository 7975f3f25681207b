#pragma once
/* One execution of a custom backend: requests as payloads, its callbacks, its answers. */
#include "base/err.h"

#include <stddef.h>

struct custom_library;
struct plugin_instance;
struct request;

/* What a custom backend has for one instance: the state of a plugin_instance. */
struct custom_context {
    struct custom_library *library;
    void *own;
};

/* custom_run - as instance_execute.
 * errors  INTERNAL when the library fails the whole batch, in its own words */
struct err *custom_run(struct plugin_instance *i, struct request **requests, size_t count);
