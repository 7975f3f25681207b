#include "net/control_task.h"

#include "base/budget.h"
#include "base/buf.h"
#include "base/list.h"
#include "base/mem.h"
#include "os/loop.h"

#include <string.h>

static void run_finish(struct loop_task *task)
{
    struct control_task *t = LIST_ITEM(task, struct control_task, task);
    t->finish(t);
}

static void control_task_deliver(struct mail *m)
{
    struct control_task *t = LIST_ITEM(m, struct control_task, mail);
    if (t->spare)
        loop_later(t->loop, LOOP_PHASE_SPARE, &t->task);
    else
        t->finish(t);
}

struct control_task *control_task_new(struct loop *loop, void (*finish)(struct control_task *t),
                                      void *owner)
{
    struct control_task *t = MEM_NEW(struct control_task);
    t->mail.deliver = control_task_deliver;
    t->task.run = run_finish;
    list_init(&t->task.node);
    t->loop = loop;
    t->finish = finish;
    t->owner = owner;
    t->places = UINT64_MAX;
    return t;
}

void control_task_free(struct control_task *t)
{
    for (size_t i = 0; i < t->param_count; i++)
        mem_free(t->names[i]);
    mem_free(t->names);
    mem_free(t->params);
    mem_free(t->model);
    mem_free(t->repository);
    mem_free(t->archive);
    buf_unref(t->body);
    mem_free(t->copy);
    budget_drop(t->account, t->held);
    mem_free(t);
}

struct err *control_task_name(const void *text, size_t len, char **ret)
{
    if (len && memchr(text, '\0', len))
        return err_new(STATUS_INVALID_ARG, "a name holds a NUL");
    *ret = mem_strndup(len ? text : "", len);
    return NULL;
}

struct err *control_task_keep(struct control_task *t, struct budget_account *account,
                              const void *data, size_t len, size_t zeros, void **ret)
{
    size_t bytes = len + zeros;
    if (!budget_take(account, bytes))
        return budget_busy(bytes, "no room for a request of %zu bytes", len);
    t->account = account;
    t->held = bytes;
    t->copy = mem_alloc(bytes);
    memcpy(t->copy, data, len);
    memset(t->copy + len, 0, zeros);
    *ret = t->copy;
    return NULL;
}

struct err *control_task_param(struct control_task *t, enum repo_param_kind kind, char *name,
                               const void *data, size_t len)
{
    if (t->param_count == REPO_MAX_PARAMS) {
        mem_free(name);
        return err_new(STATUS_INVALID_ARG, "too many load parameters: expected at most %u",
                       REPO_MAX_PARAMS);
    }
    size_t n = t->param_count++;
    t->params = mem_realloc(t->params, t->param_count * sizeof(*t->params));
    t->names = mem_realloc(t->names, t->param_count * sizeof(char *));
    t->names[n] = name;
    t->params[n] = (struct repo_param){.kind = kind, .name = name, .data = data, .len = len};
    return NULL;
}

void control_task_done(void *owner, struct err *e)
{
    struct control_task *t = owner;
    t->error = e;
    loop_post(t->loop, &t->mail, &t->mail);
}

void control_task_load(struct control_task *t, struct repo *r)
{
    struct err *e = repo_load(r,
                              &(struct repo_load){.model = t->model,
                                                  .repository = t->repository,
                                                  .archive = t->archive,
                                                  .params = t->params,
                                                  .param_count = t->param_count},
                              control_task_done, t);
    if (e)
        control_task_done(t, e);
}

void control_task_unload(struct control_task *t, struct repo *r)
{
    struct err *e = repo_unload(r, t->model, t->repository, t->dependents, control_task_done, t);
    if (e)
        control_task_done(t, e);
}

void control_task_index(struct control_task *t, struct repo *r)
{
    t->spare = true;
    /* The serving versions are known without a look at the disk. */
    struct err *e = repo_places(r, t->repository, &t->places);
    bool look = !e && !t->ready_only;
    if (look)
        e = repo_rescan(r, control_task_done, t);
    if (!look || e)
        control_task_done(t, e);
}
