#pragma once
/* What is being served, as immutable snapshots: readers look names up without a lock, the
 * repository replaces the whole.
 *
 * A view is a reader's cached snapshot: one a loop, or a short-lived one for other threads. */
#include "base/err.h"
#include "os/loop.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct serve_table;
struct serve_version;
struct table_snapshot;

/* A version as people see it, whether it serves or not. */
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
    struct table_entry *entries; /* by rising number */
    uint32_t entry_count;        /* 0: known to the repository, never loaded */
    uint32_t latest;  /* index of the highest READY entry; entry_count when there is none */
    uint64_t places;  /* bit n = the n-th repository has it */
    bool wanted;      /* it was asked for: strict readiness waits for it */
    bool versionless; /* it could be read, and its version policy picked none */
    /* Where models of one name are told apart by their repository: */
    const char *space; /* the path of it; NULL = they are not, or this one lies in none */
    const char *title; /* what people are told, "space::name"; NULL = the name */
    bool shared;       /* the name alone does not mean it */
    bool stand_in;     /* no model: what a name leads to that means none of them, or several */
    uint32_t meanings; /* of such a name: how many */
    const struct table_model *namesake; /* another one; set by the table */
};

struct table_view {
    struct serve_table *table;
    struct table_snapshot *snapshot; /* a reference; NULL before the first use */
    uint64_t generation;
    struct loop *loop; /* told to let go of an old snapshot; NULL for views of other threads */
    struct list node;
    struct mail mail;
    _Atomic(bool) told; /* the mail is under way; cleared by its delivery */
};

struct serve_table *table_new(void);
void table_free(struct serve_table *t);

/* table_state_name - "READY", "UNAVAILABLE", ...; "UNKNOWN" for others. */
const char *table_state_name(enum table_state s);

/* table_view_open, table_view_close - a loop's view lives as long as the loop; called on its
 * thread or before it runs. */
void table_view_open(struct table_view *view, struct serve_table *t, struct loop *loop);
void table_view_close(struct table_view *view);

/* table_find - the version that a request means, pinned for the caller (give the pin to
 * request_new, or version_unpin it).
 * number  -1 = the latest that is ready
 * errors  NOT_FOUND and UNAVAILABLE in the reference's words: "Request for unknown model: 'x' is
 *         not found", "... 'x' version N is not found", "... 'x' has no available versions",
 *         "... 'x' version N is not at ready state"; where models of one name are told apart
 *         also INVALID_ARG "There are N identifiers of model 'x' ...", and in place of NOT_FOUND
 *         for what was never loaded */
struct err *table_find(struct table_view *view, const char *name, size_t name_len, int64_t number,
                       struct serve_version **ret);

/* table_find_in - the same for who knows the space of the model ("" = of none): a step of an
 * ensemble. */
struct err *table_find_in(struct table_view *view, const char *space, const char *name,
                          int64_t number, struct serve_version **ret);

/* table_title - the name of a model as people see it. */
static inline const char *table_title(const struct table_model *m)
{
    return m->title ? m->title : m->name;
}

/* table_model - what is known of a model; NULL when there is none. A name that means several has
 * no versions. Valid until the loop's turn ends, or the next call with the view. */
const struct table_model *table_model(struct table_view *view, const char *name, size_t name_len);

/* table_models - all models, by space and name. */
const struct table_model *table_models(struct table_view *view, uint32_t *ret_count);

/* table_publish - replace the snapshot; models (sorted here) and what they point to are taken
 * over. Repository only. */
void table_publish(struct serve_table *t, struct table_model *models, uint32_t count);

/* table_publish_apart - the same where models of one name are told apart: a name finds the model
 * that is not shared.
 * stand_ins  for the names that lead to none; taken over */
void table_publish_apart(struct serve_table *t, struct table_model *models, uint32_t count,
                         struct table_model *stand_ins, uint32_t stand_in_count);

/* table_refuse - whatever is looked for from now on is answered by UNAVAILABLE "Server not
 * ready": the start failed, and nothing was or will be published. Any thread.
 * table_refuses - that error; NULL unless it was called. */
void table_refuse(struct serve_table *t);
struct err *table_refuses(const struct serve_table *t);

/* table_settle - wait until no reader holds a snapshot older than the current one. Repository
 * only; blocks. */
void table_settle(struct serve_table *t);
