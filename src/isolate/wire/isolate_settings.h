#pragma once
/* What a configuration says about isolation: parameters of the model. Pure. */
#include "base/err.h"
#include "base/strbuf.h"
#include "os/clock.h"

#include <stdbool.h>
#include <stdint.h>

struct Inference__ModelConfig;

struct isolate_settings {
    bool wanted; /* ISOLATION: "process" */
    /* ISOLATION_MEMORY_MB: of shared memory, each way; 0 = the memory budget, at most 8 GiB */
    uint64_t memory_bytes;
    /* ISOLATION_EXECUTE_TIMEOUT_SECS: a longer Execute ends the process; 0 = no limit */
    time_ns execute_ns;
    /* ISOLATION_GRACE_SECS: how long a process may be silent that shall end; 5 s */
    time_ns grace_ns;
    char *environment;   /* ISOLATION_ENVIRONMENT: more variables that pass; NULL = none */
    char *user;          /* ISOLATION_USER: whose the process is; NULL = the server's */
    unsigned deny;       /* ISOLATION_DENY: a set of enum isolate_deny */
    struct strbuf files; /* what may be opened nevertheless: "r PATH\n" to read, "w PATH\n" */
};

enum isolate_deny {
    ISOLATE_DENY_NETWORK = 1,
    ISOLATE_DENY_PROGRAMS = 2,
    ISOLATE_DENY_FILES = 4, /* but ISOLATION_FILES */
};

/* isolate_settings_read - the defaults, and what the parameters say; isolate_settings_fini
 * whatever it returns.
 * errors  INVALID_ARG, naming the parameter */
struct err *isolate_settings_read(const struct Inference__ModelConfig *proto,
                                  struct isolate_settings *ret);
void isolate_settings_fini(struct isolate_settings *s);

/* isolate_settings_add_file - one path more that may be opened. */
void isolate_settings_add_file(struct isolate_settings *s, const char *path, size_t len,
                               bool write);
