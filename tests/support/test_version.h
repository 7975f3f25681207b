#pragma once
/* A served version around a backend made of C functions, for tests of serve/. */
#include "plugin/backend.h"
#include "serve/version.h"

struct features;

/* test_version_backend - a backend whose only function is `execute`. */
struct plugin_backend
test_version_backend(TRITONSERVER_Error *(*execute)(TRITONBACKEND_ModelInstance *,
                                                    TRITONBACKEND_Request **, uint32_t));

/* test_version_config - compile a configuration from text, with defaults. */
struct model_config *test_version_config(const char *text);

/* test_version_features - all features of the server, without options. */
struct features *test_version_features(void);

/* test_version_made - not started, and without wrappers around its scheduler; otherwise as the
 * next. */
struct serve_version *test_version_made(struct plugin_backend *backend, const char *config,
                                        struct loop *house);

/* test_version_new - started and ready for requests; `backend` must outlive it.
 * config  text of a config.pbtxt */
struct serve_version *test_version_new(struct plugin_backend *backend, const char *config,
                                       struct loop *house);

/* test_version_was_quick - what ran inline until now counts as quick, however slow the machine is:
 * called in every run, it keeps the version on its loop. Takes the version's lock. */
void test_version_was_quick(struct serve_version *v);
