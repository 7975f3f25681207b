#include "server/progress.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "server/server.h"
#include "server/start_table.h"

/* Nothing loads and the start is not over: a store has not answered. */
static void progress_tell_repositories(const struct options *o)
{
    struct strbuf names = STRBUF_INIT;
    for (size_t i = 0; i < o->repository_count; i++)
        strbuf_printf(&names, "%s%s", i ? ", " : "", o->repositories[i]);
    LOG_INFO("still looking at the model repositories: %s (--log-verbose=1 tells of each attempt)",
             strbuf_str(&names));
    strbuf_fini(&names);
}

/* A model that began to load just before this look is not slow. It is named if it still loads at
 * the next look. */
static void progress_due(struct loop_timer *t)
{
    struct progress *p = LIST_ITEM(t, struct progress, timer);
    struct worker *w = &p->server->workers[0];
    char *names = start_table_loading(&w->view);
    bool starting = atomic_load(&p->server->state) == SERVER_INITIALIZING;
    if (names && (p->loading || starting))
        LOG_INFO("still loading: %s", names);
    else if (starting)
        progress_tell_repositories(p->server->options);
    p->loading = names != NULL;
    mem_free(names);
    loop_timer_set(w->loop, t, loop_now(w->loop) + PROGRESS_NS);
}

void progress_start(struct progress *p, struct server *s)
{
    struct loop *loop = s->workers[0].loop;
    *p = (struct progress){.server = s, .timer = LOOP_TIMER_INIT(progress_due)};
    loop_timer_set(loop, &p->timer, loop_now(loop) + PROGRESS_NS);
}
