#pragma once
/* Where a model was loaded from; counted, since versions that are being retired still read from
 * it. */
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
    bool temporary;            /* made for an override: removed with the last reference */
    struct cloud_copy *copy;   /* of a model in a store: dir is its directory; else NULL */
    struct agents_set *agents; /* owned: those that put the model here; NULL = none */
    struct source *under;      /* where it lay before they did; a reference */
    unsigned serving; /* versions of it that serve; guarded by the lock of the repository */
};

/* source_new - one reference; takes dir over. */
struct source *source_new(char *dir, bool temporary);

/* source_of_copy - the same of a copy of a model in a store, which it takes over. */
struct source *source_of_copy(struct cloud_copy *copy);
/* source_moved - the same of where repository agents put a model, or left it; takes over the
 * reference on where it was and the agents, who hear of its end with the last reference. dir:
 * copied. */
struct source *source_moved(struct source *from, const char *dir, struct agents_set *agents);
struct source *source_ref(struct source *s);

/* source_unref - NULL is fine. May remove files. */
void source_unref(struct source *s);

/* What a model has, at one time. Stamps are numbers that change when the files do. */
struct source_look {
    uint64_t config;   /* stamp of config.pbtxt and configs/ */
    uint64_t beside;   /* of what else lies beside the versions */
    int64_t *versions; /* in no order; owned */
    size_t version_count;
};

/* source_look - look at all of it but for what is in its versions. Blocks.
 * ret  source_look_fini; zeros where it fails */
struct err *source_look(const struct source *s, struct source_look *ret);
void source_look_fini(struct source_look *l);

/* source_stamp - of the directory of one version. Blocks. */
struct err *source_stamp(const struct source *s, int64_t version, uint64_t *ret);

/* source_fetch - the files of a version are in `dir`: those of a model in a store come only now.
 * Blocks. */
struct err *source_fetch(struct source *s, int64_t version);

/* source_changed - whether reading failed since the model in the store is another by now: a new
 * look may succeed. */
bool source_changed(const struct source *s);
