/* tracing/tracing: what waits, where there is no room for more. */
#include "tracing/tracing.h"

#include "base/strbuf.h"
#include "infer/trace.h"
#include "server/options/options_trace.h"
#include "tracing/tracing_record.h"

#include "support/unit.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <unistd.h>

static void drop(struct tracing_record *r)
{
    tracing_record_free(r);
}

static struct tracing_record *begin(struct tracing *t)
{
    return tracing_begin(t, "model", (struct tracing_header){0}, (struct tracing_header){0});
}

static void finish(struct tracing_record *r)
{
    struct trace *t = tracing_record_trace(r);
    trace_report(t, TRITONSERVER_TRACE_REQUEST_START, 1);
    tracing_end(r);
    trace_release(t);
}

/* Waits until the writer's thread has made the file; fd tells of new files in its folder. */
static bool appears(int fd, const char *path)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    char events[4096];
    while (access(path, F_OK) != 0)
        if (poll(&p, 1, 60000) != 1 || read(fd, events, sizeof(events)) <= 0)
            return false;
    return true;
}

/* Of a count of two the first waits for the second; that there is no room for that ends it. */
static void the_last_of_a_count_has_no_room(void **state)
{
    (void)state;
    char folder[] = "/tmp/tracing-XXXXXX", path[64], written[80];
    assert_non_null(mkdtemp(folder));
    int made = inotify_init1(IN_CLOEXEC);
    assert_true(inotify_add_watch(made, folder, IN_CREATE) >= 0);
    snprintf(path, sizeof(path), "%s/trace", folder);
    snprintf(written, sizeof(written), "%s.0", path);
    const struct options_trace o = {
        .level = TRITONSERVER_TRACE_LEVEL_TIMESTAMPS, .rate = 1, .count = 2, .file = path};
    struct tracing *t;
    unit_succeeds(tracing_open(&o, &t));
    finish(begin(t));
    struct list fillers;
    list_init(&fillers);
    struct tracing_record *filler;
    while ((filler = tracing_record_new(o.level, drop, NULL)))
        list_append(&fillers, &filler->node);
    assert_null(begin(t));
    assert_true(appears(made, written));
    struct list *node;
    while ((node = list_pop(&fillers)))
        tracing_record_unref(LIST_ITEM(node, struct tracing_record, node));
    tracing_close(t, 0);
    assert_int_equal(tracing_record_held(), 0);
    close(made);
    unlink(written);
    assert_int_equal(rmdir(folder), 0);
}

UNIT_MAIN(UNIT(the_last_of_a_count_has_no_room))
