#include "plugin/batch_strategy.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "infer/request.h"
#include "os/dl.h"
#include "os/mutex.h"
#include "plugin/alone.h"
#include "plugin/model.h"
#include "triton/core/tritonbackend.h"

#include <stdatomic.h>

struct batch_strategy {
    struct dl *dl;
    struct plugin_model *model;
    TRITONSERVER_Error *(*batcher_initialize)(TRITONBACKEND_Batcher **, TRITONBACKEND_Model *);
    TRITONSERVER_Error *(*batcher_finalize)(TRITONBACKEND_Batcher *);
    TRITONSERVER_Error *(*initialize)(const TRITONBACKEND_Batcher *, void **);
    TRITONSERVER_Error *(*include)(TRITONBACKEND_Request *, void *, bool *);
    TRITONSERVER_Error *(*finalize)(void *);
    TRITONBACKEND_Batcher *batcher; /* owned by the library, for all batches */
    bool begun;                     /* its Initialize function was called, even if that failed */
    /* owned by the library, for the current batch; guarded by the batcher's lock */
    void *userp;
    struct mutex lock;  /* rank LEAF; guards failed, entry and more */
    struct err *failed; /* the first error that is not reported yet */
    const char *entry;  /* the function that returned it */
    unsigned more;      /* number of errors after it */
    atomic_bool told;   /* there is an error; only a hint, `failed` decides */
};

/* -- opening -- */

/* Returns how many of the five functions the library has. The names of the others are appended
 * to `missing`. */
static size_t batch_strategy_find_functions(struct batch_strategy *s, struct strbuf *missing)
{
    const struct dl_function wanted[] = {
        {"TRITONBACKEND_ModelBatcherInitialize", &s->batcher_initialize},
        {"TRITONBACKEND_ModelBatcherFinalize", &s->batcher_finalize},
        {"TRITONBACKEND_ModelBatchInitialize", &s->initialize},
        {"TRITONBACKEND_ModelBatchIncludeRequest", &s->include},
        {"TRITONBACKEND_ModelBatchFinalize", &s->finalize},
    };
    size_t count = sizeof(wanted) / sizeof(*wanted);
    for (size_t i = 0; i < count; i++)
        if (!dl_symbol(s->dl, wanted[i].name))
            strbuf_printf(missing, "%s%s", missing->len ? ", " : "", wanted[i].name);
    return dl_functions(s->dl, wanted, count);
}

static struct err *check_functions(struct batch_strategy *s, const char *path, bool *ret_none)
{
    struct strbuf missing = STRBUF_INIT;
    size_t found = batch_strategy_find_functions(s, &missing);
    struct err *e = NULL;
    *ret_none = found == 0;
    if (found && missing.len)
        e = err_new(STATUS_INVALID_ARG,
                    "%s does not define all required custom batching functions for model %s: it "
                    "has no %s",
                    path, s->model->name, strbuf_str(&missing));
    strbuf_fini(&missing);
    return e;
}

static struct err *batch_strategy_open_library(struct batch_strategy *s, const char *path,
                                               bool *ret_none)
{
    dl_make_self_global((const void *)(uintptr_t)batch_strategy_open_library);
    struct err *e = dl_open(path, &s->dl);
    if (!e)
        e = alone_check("batching strategy", path);
    return e ? e : check_functions(s, path, ret_none);
}

struct err *batch_strategy_open(const char *path, struct plugin_model *m,
                                struct batch_strategy **ret)
{
    struct batch_strategy *s = MEM_NEW(struct batch_strategy);
    s->model = m;
    mutex_init(&s->lock, MUTEX_RANK_LEAF);
    bool none = false;
    struct err *e = batch_strategy_open_library(s, path, &none);
    if (!e && !none) {
        s->begun = true;
        e = (struct err *)s->batcher_initialize(&s->batcher, (TRITONBACKEND_Model *)m);
    }
    if (e || none) {
        batch_strategy_close(s);
        s = NULL;
    }
    if (!e)
        *ret = s;
    return e;
}

/* Finalizes the batcher state. As in the reference, this also happens if Initialize failed,
 * because it may have allocated something. */
static void end_batcher(struct batch_strategy *s)
{
    struct err *e = s->begun ? (struct err *)s->batcher_finalize(s->batcher) : NULL;
    if (e)
        LOG_ERROR("Custom batcher finalization failed for model %s: %s", s->model->name,
                  err_message(e));
    err_free(e);
}

void batch_strategy_close(struct batch_strategy *s)
{
    if (!s)
        return;
    batch_strategy_report(s);
    end_batcher(s);
    dl_close(s->dl);
    mutex_fini(&s->lock);
    mem_free(s);
}

/* -- errors of the library -- */

/* Keeps an error for the next report; takes it over. */
static void keep_failure(struct batch_strategy *s, const char *entry, struct err *e)
{
    if (!e)
        return;
    mutex_lock(&s->lock);
    if (s->failed) {
        s->more++;
        err_free(e);
    } else {
        s->failed = e;
        s->entry = entry;
    }
    mutex_unlock(&s->lock);
    atomic_store_explicit(&s->told, true, memory_order_relaxed);
}

void batch_strategy_report(struct batch_strategy *s)
{
    if (!atomic_load_explicit(&s->told, memory_order_relaxed))
        return;
    atomic_store_explicit(&s->told, false, memory_order_relaxed);
    mutex_lock(&s->lock);
    struct err *e = s->failed;
    const char *entry = s->entry;
    unsigned more = s->more;
    s->failed = NULL;
    s->more = 0;
    mutex_unlock(&s->lock);
    if (e)
        LOG_ERROR("Custom batching %s function failed for model %s: %s", entry, s->model->name,
                  err_message(e));
    if (more)
        LOG_ERROR("custom batching functions failed %u times more for model %s", more,
                  s->model->name);
    err_free(e);
}

/* -- the strategy's functions -- */

void batch_strategy_begin(void *arg)
{
    struct batch_strategy *s = arg;
    keep_failure(s, "initialization", (struct err *)s->initialize(s->batcher, &s->userp));
}

/* After an error the value that the function wrote before it counts. */
bool batch_strategy_include(void *arg, const struct request *r)
{
    struct batch_strategy *s = arg;
    bool include = false;
    keep_failure(s, "include", (struct err *)s->include(request_handle(r), s->userp, &include));
    return include;
}

/* As in the reference, the end of a batch is not reported if the library keeps nothing for the
 * batch. */
void batch_strategy_end(void *arg)
{
    struct batch_strategy *s = arg;
    void *userp = s->userp;
    s->userp = NULL;
    if (userp)
        keep_failure(s, "finalization", (struct err *)s->finalize(userp));
}
