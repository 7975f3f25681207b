#pragma once

#include "host.h"

/* asked_heard - do what a stub asks for by LINK_CALL (calls.h). Under stub->reading. */
void asked_heard(struct host *host, struct heard *heard);

/* A value of a call. */
struct asked_value {
    uint32_t kind; /* enum call_kind */
    int64_t number;
    double real;
    const char *text; /* "" unless CALL_TEXT; a NUL follows */
    size_t length;
};
