#pragma once
/* The place that a model was loaded from. Counted by references, because versions that are being
 * retired still read from it. */
#include "base/err.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct agents_set;
struct cloud_copy;

struct source {
    atomic_uint refs; /* the last unref acquires what the others released */
    char *dir;
    /* made for an override; its files are removed with the last reference */
    bool temporary;
    struct cloud_copy *copy;   /* of a model in a store, whose directory is `dir`; else NULL */
    struct agents_set *agents; /* owned: the agents that put the model here; NULL = none */
    struct source *under;      /* where the model was before the agents moved it; a reference */
    unsigned serving;          /* serving versions of it; guarded by the repository's lock */
};

/* source_new - the caller gets one reference; the source owns dir. */
struct source *source_new(char *dir, bool temporary);

/* source_of_copy - the source of a copy of a model in a store; it owns the copy. */
struct source *source_of_copy(struct cloud_copy *copy);
/* source_moved - the source of a model where repository agents left it. It owns the reference
 * `from` and the agents, which are told of its end with the last reference. dir is copied. */
struct source *source_moved(struct source *from, const char *dir, struct agents_set *agents);
struct source *source_ref(struct source *s);

/* source_unref - NULL is fine. May remove files. */
void source_unref(struct source *s);

/* The contents of a model at one time. A stamp is a number that changes when the files change. */
struct source_look {
    uint64_t config;   /* stamp of config.pbtxt and configs/ */
    uint64_t beside;   /* stamp of the other files outside the version directories */
    int64_t *versions; /* unordered; owned */
    size_t version_count;
};

/* source_look - look at everything except the contents of the version directories. Blocks.
 * ret  free it with source_look_fini; zeros on error */
struct err *source_look(const struct source *s, struct source_look *ret);
void source_look_fini(struct source_look *l);

/* source_stamp - the stamp of the directory of one version. Blocks. */
struct err *source_stamp(const struct source *s, int64_t version, uint64_t *ret);

/* source_fetch - make sure that the files of a version are in `dir`: those of a model in a store
 * are downloaded now. Blocks. */
struct err *source_fetch(struct source *s, int64_t version);

/* source_changed - true if reading failed because the model in the store has changed: a new look
 * may succeed. */
bool source_changed(const struct source *s);
