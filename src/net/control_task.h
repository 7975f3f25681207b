#pragma once
/* An operation on the repository that a client asked for: made on a loop, worked on elsewhere,
 * answered on that loop. */
#include "base/err.h"
#include "os/loop.h"
#include "repo/repo.h"

struct budget_account;
struct buf;

struct control_task {
    struct mail mail;
    struct loop_task task; /* the finish, where it takes long and many may wait for it at once: */
    bool spare;            /* then it runs in the loop's spare time */
    struct loop *loop;
    void (*finish)(struct control_task *t); /* on the loop, once; frees the task */
    void *owner;                            /* whom to answer */
    struct err *error;                      /* set before finish; finish takes it over */

    char *model; /* owned, as what follows */
    char *repository;
    struct buf *body;               /* what parameters point into; */
    char *copy;                     /* or this; both may be NULL */
    struct budget_account *account; /* holds the copy: */
    size_t held;                    /* so many bytes */
    struct repo_param *params;
    char **names; /* of the parameters */
    size_t param_count;
    bool ready_only; /* of an index */
    bool dependents; /* of an unload: see repo_unload */
    uint64_t places;
};

/* control_task_new - for the loop of the calling thread. */
struct control_task *control_task_new(struct loop *loop, void (*finish)(struct control_task *t),
                                      void *owner);
void control_task_free(struct control_task *t);

/* control_task_name - a copy of a name that a peer sent, which ends in NUL.
 * errors  INVALID_ARG for one that holds a NUL */
struct err *control_task_name(const void *text, size_t len, char **ret);

/* control_task_keep - copy a message that lies where the next one will be received, and `zeros`
 * bytes behind it.
 * account  of the connection: short ones are kept also where the budget is spent, by those who
 *          look after a server then
 * ret      the copy, which the task owns
 * errors   UNAVAILABLE when there is no room */
struct err *control_task_keep(struct control_task *t, struct budget_account *account,
                              const void *data, size_t len, size_t zeros, void **ret);

/* control_task_param - one more parameter.
 * name    a file's, without "file:"; taken over in any case; NULL for a configuration
 * data    lies in body or copy
 * errors  INVALID_ARG when there are REPO_MAX_PARAMS already */
struct err *control_task_param(struct control_task *t, enum repo_param_kind kind, char *name,
                               const void *data, size_t len);

/* control_task_load, control_task_unload, control_task_index - begin; finish is called later in
 * any case. */
void control_task_load(struct control_task *t, struct repo *r);
void control_task_unload(struct control_task *t, struct repo *r);
void control_task_index(struct control_task *t, struct repo *r);
