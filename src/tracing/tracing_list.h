#pragma once
/* Lists in variables of OpenTelemetry: key=value,key=value. Escapes of a value are %XX, as in the
 * OpenTelemetry specification (configuration/sdk-environment-variables, and W3C Baggage). */
#include <stddef.h>

#define TRACING_LIST_MOST 32

struct tracing_list {
    char *entries[TRACING_LIST_MOST]; /* "key=value" */
    size_t count;
};

/* tracing_list_read - read the list of a variable of the environment. An entry that is none, or
 * one too many, is left out, and the log says so; values are never logged, they may be secrets.
 * Without the variable the list is empty.
 * tracing_list_fini - free it. */
void tracing_list_read(struct tracing_list *l, const char *variable);
void tracing_list_fini(struct tracing_list *l);
