#pragma once
/* The settings of isolation, from parameters in the model's configuration. Pure. */
#include "base/err.h"
#include "base/strbuf.h"
#include "os/clock.h"

#include <stdbool.h>
#include <stdint.h>

struct Inference__ModelConfig;

struct isolate_settings {
    bool wanted; /* ISOLATION: "process" */
    /* ISOLATION_MEMORY_MB: shared memory in each direction; 0 = the memory budget, at most 8 GiB */
    uint64_t memory_bytes;
    /* ISOLATION_EXECUTE_TIMEOUT_SECS: a longer Execute ends the process; 0 = no limit */
    time_ns execute_ns;
    /* ISOLATION_GRACE_SECS: how long an ending process may take without answering; 5 s */
    time_ns grace_ns;
    /* ISOLATION_ENVIRONMENT: more environment variables for the process; NULL = none */
    char *environment;
    /* ISOLATION_USER: the process runs as this user; NULL = the server's user */
    char *user;
    unsigned deny; /* ISOLATION_DENY: a set of enum isolate_deny */
    /* exceptions to ISOLATE_DENY_FILES: lines "r PATH" to read, "w PATH" to write */
    struct strbuf files;
};

enum isolate_deny {
    ISOLATE_DENY_NETWORK = 1,
    ISOLATE_DENY_PROGRAMS = 2,
    ISOLATE_DENY_FILES = 4, /* except ISOLATION_FILES */
};

/* isolate_settings_read - read the defaults and the parameters. Call isolate_settings_fini
 * whatever it returns.
 * errors  INVALID_ARG, naming the parameter */
struct err *isolate_settings_read(const struct Inference__ModelConfig *proto,
                                  struct isolate_settings *ret);
void isolate_settings_fini(struct isolate_settings *s);

/* isolate_settings_add_file - allow one more path. */
void isolate_settings_add_file(struct isolate_settings *s, const char *path, size_t len,
                               bool write);
