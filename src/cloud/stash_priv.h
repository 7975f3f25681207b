#pragma once
/* What the files of the stash share. */
#include "cloud/stash.h"

struct stash {
    char *root;
    char *run_dir; /* of this process */
    int run_lock;
    uint64_t max_bytes;
    struct stash_hash hash;
    struct mutex lock; /* rank LEAF; guards what follows */
    uint64_t bytes;    /* of content, as far as this process knows */
    uint64_t next_dir;
};

/* Content and references by name; the caller's (mem_free). */
char *stash_object_path(const struct stash *s, const char *sha_hex);
char *stash_ref_path(const struct stash *s, const char *id);
