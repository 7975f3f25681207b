#pragma once
/* The models and versions that are served, as immutable snapshots. Readers look names up without
 * a lock; the repository replaces the whole snapshot.
 *
 * A view is a reader's cached snapshot: each loop has one, other threads open one for a short
 * time. */
#include "base/err.h"
#include "os/loop.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct serve_table;
struct serve_version;
struct table_snapshot;

/* The state of a version as clients see it. */
enum table_state {
    TABLE_UNKNOWN,
    TABLE_READY,
    TABLE_UNAVAILABLE, /* it failed, or never loaded */
    TABLE_UNLOADED,    /* told as unavailable too, with "unloaded" as the reason */
    TABLE_LOADING,
    TABLE_UNLOADING,
};

struct table_entry {
    int64_t number;
    enum table_state state;
    const char *reason;            /* "" when there is none */
    struct serve_version *version; /* NULL unless READY */
};

struct table_model {
    const char *name;
    struct table_entry *entries; /* by ascending number */
    uint32_t entry_count;        /* 0: the repository knows the model, but never loaded it */
    uint32_t latest;  /* index of the highest READY entry; entry_count when there is none */
    uint64_t places;  /* bit n = the n-th repository has it */
    bool wanted;      /* somebody asked for it, so strict readiness waits for it */
    bool versionless; /* it was read, and its version policy chose no version */
    /* The next fields are used if models with equal names are told apart by their repository: */
    const char *space; /* the path of its repository; NULL = not told apart, or no repository */
    const char *title; /* the name that clients see, "space::name"; NULL = the name */
    bool shared;       /* the name alone is ambiguous */
    /* not a model: the entry of a name that means none of the models, or several */
    bool stand_in;
    uint32_t meanings;                  /* of a stand-in: how many models have the name */
    const struct table_model *namesake; /* another model of the same name; set by the table */
};

struct table_view {
    struct serve_table *table;
    struct table_snapshot *snapshot; /* a counted reference; NULL before the first use */
    uint64_t generation;
    struct loop *loop; /* it is told to release an old snapshot; NULL for views of other threads */
    struct list node;
    struct mail mail;
    _Atomic(bool) told; /* the mail is in flight; cleared when it is delivered */
};

struct serve_table *table_new(void);
void table_free(struct serve_table *t);

/* table_state_name - "READY", "UNAVAILABLE", ...; "UNKNOWN" for others. */
const char *table_state_name(enum table_state s);

/* table_view_open, table_view_close - the view of a loop lives as long as the loop; call these
 * on its thread or before it runs. */
void table_view_open(struct table_view *view, struct serve_table *t, struct loop *loop);
void table_view_close(struct table_view *view);

/* table_find - find the version that a request names, and pin it for the caller, who passes the
 * pin to request_new or calls version_unpin.
 * number  -1 = the latest that is ready
 * errors  NOT_FOUND and UNAVAILABLE in the reference's words: "Request for unknown model: 'x' is
 *         not found", "... 'x' version N is not found", "... 'x' has no available versions",
 *         "... 'x' version N is not at ready state". If models of one name are told apart: also
 *         INVALID_ARG "There are N identifiers of model 'x' ...", which also replaces NOT_FOUND
 *         for models that were never loaded */
struct err *table_find(struct table_view *view, const char *name, size_t name_len, int64_t number,
                       struct serve_version **ret);

/* table_find_in - as table_find, for a caller that knows the space of the model ("" = no space),
 * such as a step of an ensemble. */
struct err *table_find_in(struct table_view *view, const char *space, const char *name,
                          int64_t number, struct serve_version **ret);

/* table_title - the name of a model as clients see it. */
static inline const char *table_title(const struct table_model *m)
{
    return m->title ? m->title : m->name;
}

/* table_model - the entry of a model; NULL when there is none. An ambiguous name has no
 * versions. Valid until the loop's turn ends, or until the next call with the view. */
const struct table_model *table_model(struct table_view *view, const char *name, size_t name_len);

/* table_models - all models, sorted by space and name. */
const struct table_model *table_models(struct table_view *view, uint32_t *ret_count);

/* table_publish - replace the snapshot. The table sorts and owns the models and what they point
 * to. Only the repository calls this. */
void table_publish(struct serve_table *t, struct table_model *models, uint32_t count);

/* table_publish_apart - as table_publish, if models of one name are told apart. A name finds the
 * model that is not shared.
 * stand_ins  entries for the names that mean no single model; the table owns them */
void table_publish_apart(struct serve_table *t, struct table_model *models, uint32_t count,
                         struct table_model *stand_ins, uint32_t stand_in_count);

/* table_refuse - answer every later lookup with UNAVAILABLE "Server not ready": the start has
 * failed, and nothing was or will be published. Any thread.
 * table_refuses - that error; NULL if table_refuse was not called. */
void table_refuse(struct serve_table *t);
struct err *table_refuses(const struct serve_table *t);

/* table_settle - wait until no reader holds a snapshot older than the current one. Only the
 * repository calls this. Blocks. */
void table_settle(struct serve_table *t);
