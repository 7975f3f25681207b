#pragma once
/* Types shared by the files of the stash. */
#include "cloud/stash.h"

struct stash {
    char *root;
    char *run_dir; /* of this process */
    int run_lock;
    uint64_t max_bytes;
    struct stash_hash hash;
    struct mutex lock; /* rank LEAF; guards the fields below */
    uint64_t bytes;    /* bytes of content, as far as this process knows */
    uint64_t next_dir;
};

/* The paths of content and references; the caller frees them (mem_free). */
char *stash_object_path(const struct stash *s, const char *sha_hex);
char *stash_ref_path(const struct stash *s, const char *id);
