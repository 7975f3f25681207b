#include "run/countdown.h"

#include "base/err.h"
#include "base/log.h"
#include "grpc/grpc_front.h"
#include "http/http_front.h"
#include "os/thread.h"
#include "repo/repo.h"

#include <string.h>

#define PERIOD_NS TIME_S(1)

static unsigned seconds_left(const struct countdown *c)
{
    time_ns now = clock_now_ns();
    return now < c->until ? (unsigned)((c->until - now + TIME_S(1) / 2) / TIME_S(1)) : 0;
}

static const char *next_line(const struct strbuf *lines, const char *line)
{
    const char *next = line ? line + strlen(line) + 1 : lines->data;
    return next && next < lines->data + lines->len ? next : NULL;
}

static void say_connections_of(const struct countdown *c, const char *service, unsigned count)
{
    if (count)
        LOG_INFO("Timeout %u: Found %u %s service connections", seconds_left(c), count, service);
}

static void say_connections(const struct countdown *c)
{
    say_connections_of(c, "HTTP", c->http ? http_front_connections(c->http) : 0);
    say_connections_of(c, "gRPC", c->grpc ? grpc_front_connections(c->grpc) : 0);
}

static void say_busy(const struct countdown *c)
{
    struct repo_left left;
    repo_busy(c->repo, &left);
    LOG_INFO("Timeout %u: Found %u model versions that have in-flight inferences", seconds_left(c),
             left.count);
    for (const char *line = NULL; (line = next_line(&left.lines, line));)
        LOG_INFO("%s", line);
    repo_left_fini(&left);
}

static void say_live(const struct countdown *c)
{
    struct repo_left left;
    repo_live(c->repo, &left);
    LOG_INFO("Timeout %u: Found %u live models and %u in-flight non-inference requests",
             seconds_left(c), left.count, left.operations);
    for (const char *line = NULL; (line = next_line(&left.lines, line));)
        LOG_VERBOSE(1, "%s", line);
    repo_left_fini(&left);
}

static void countdown_main(void *arg)
{
    struct countdown *c = arg;
    mutex_lock(&c->lock);
    while (!c->over) {
        if (clock_now_ns() < c->next) {
            mutex_cond_wait_until(&c->changed, &c->lock, c->next);
            continue;
        }
        c->next += PERIOD_NS;
        bool unloading = c->unloading;
        mutex_unlock(&c->lock);
        if (unloading) {
            say_live(c);
        } else {
            say_connections(c);
            say_busy(c);
        }
        mutex_lock(&c->lock);
    }
    mutex_unlock(&c->lock);
}

void countdown_begin(struct countdown *c, struct repo *repo, struct http_front *http,
                     struct grpc_front *grpc, time_ns until)
{
    *c = (struct countdown){.repo = repo,
                            .http = http,
                            .grpc = grpc,
                            .until = until,
                            .next = clock_now_ns() + PERIOD_NS};
    mutex_init(&c->lock, MUTEX_RANK_LEAF);
    mutex_cond_init(&c->changed);
    LOG_INFO("Waiting for in-flight requests to complete.");
    say_connections(c);
    say_busy(c);
    err_free(thread_start("countdown", countdown_main, c, &c->thread));
}

void countdown_unload(struct countdown *c)
{
    LOG_INFO("All models are stopped, unloading models");
    say_live(c);
    mutex_lock(&c->lock);
    c->unloading = true;
    c->next = clock_now_ns() + PERIOD_NS;
    mutex_cond_signal(&c->changed);
    mutex_unlock(&c->lock);
}

void countdown_end(struct countdown *c)
{
    mutex_lock(&c->lock);
    c->over = true;
    mutex_cond_signal(&c->changed);
    mutex_unlock(&c->lock);
    thread_join(c->thread);
    say_live(c);
    mutex_cond_fini(&c->changed);
    mutex_fini(&c->lock);
}
