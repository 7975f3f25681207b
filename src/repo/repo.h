#pragma once
/* The repository: which models there are, which versions shall serve, and making it so. Publishes what serves in a serve_table. */
#include "base/err.h"
#include "repo/load.h"

#include <stdbool.h>
#include <stddef.h>

struct repo;
struct serve_table;

struct repo_settings {
    const char *const *paths; /* of the model repositories; borrowed */
    size_t path_count;
    unsigned load_threads; /* models that load at the same time, at least 1 */
    struct load_context context;
};

struct repo *repo_new(const struct repo_settings *settings, struct serve_table *table);

/* repo_load_all - find every model of every repository and load what its version policy asks for; returns when each is ready or has
 * failed. What failed is in the table with its reason, and in the log. Blocks.
 * ret_failed  how many models have no version that serves though they should
 * errors      only when a repository cannot be read at all */
struct err *repo_load_all(struct repo *r, size_t *ret_failed);

/* repo_unload_all - unpublish everything, wait for requests under way, free the models. Loops still run. Blocks. */
void repo_unload_all(struct repo *r);
void repo_free(struct repo *r);
