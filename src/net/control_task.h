#pragma once
/* An operation that a client asked for, mostly on the repository. It is made on a loop, runs on
 * other threads, and is answered on that loop. */
#include "base/err.h"
#include "os/loop.h"
#include "repo/repo.h"

struct budget_account;
struct buf;

struct control_task {
    struct mail mail;
    struct loop_task task; /* runs `finish`, if `spare` is set */
    /* `finish` takes long and may be needed many times at once, so it runs in the loop's spare
     * time */
    bool spare;
    struct loop *loop;
    void (*finish)(struct control_task *t); /* called on the loop, once; frees the task */
    void *owner;                            /* whom to answer */
    struct err *error;                      /* set before finish, which takes it over */

    char *model; /* owned, like the fields below */
    char *repository;
    char *archive;                  /* see repo_load; NULL = none */
    struct buf *body;               /* the memory that parameters point into; may be NULL */
    char *copy;                     /* a copy that parameters point into; may be NULL */
    struct budget_account *account; /* charged for the copy */
    size_t held;                    /* bytes of the copy */
    struct repo_param *params;
    char **names; /* of the parameters */
    size_t param_count;
    bool ready_only; /* for an index */
    bool dependents; /* for an unload: see repo_unload */
    uint64_t places;
};

/* control_task_new - make a task for the loop of the calling thread. */
struct control_task *control_task_new(struct loop *loop, void (*finish)(struct control_task *t),
                                      void *owner);
void control_task_free(struct control_task *t);

/* control_task_name - copy a name that a peer sent; the copy ends in NUL.
 * errors  INVALID_ARG if the name contains a NUL */
struct err *control_task_name(const void *text, size_t len, char **ret);

/* control_task_keep - copy a message that lies in the receive buffer, followed by `zeros` zero
 * bytes.
 * account  of the connection: a short message is kept even if the budget is spent, so that
 *          operators can still control the server
 * ret      the copy, owned by the task
 * errors   UNAVAILABLE if there is no room */
struct err *control_task_keep(struct control_task *t, struct budget_account *account,
                              const void *data, size_t len, size_t zeros, void **ret);

/* control_task_param - add a parameter.
 * name    of a file, without "file:"; taken over in any case; NULL for a configuration
 * data    lies in body or copy
 * errors  INVALID_ARG if there are REPO_MAX_PARAMS already */
struct err *control_task_param(struct control_task *t, enum repo_param_kind kind, char *name,
                               const void *data, size_t len);

/* control_task_done - the operation of a task has ended, with this error or none: have it finished.
 * Any thread.
 * owner  the task */
void control_task_done(void *owner, struct err *e);

/* control_task_load, control_task_unload, control_task_index - begin the operation; finish is
 * called later in any case. */
void control_task_load(struct control_task *t, struct repo *r);
void control_task_unload(struct control_task *t, struct repo *r);
void control_task_index(struct control_task *t, struct repo *r);
