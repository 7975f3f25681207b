#include "server/progress.h"

#include "base/log.h"
#include "base/mem.h"
#include "server/server.h"
#include "server/start_table.h"

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
