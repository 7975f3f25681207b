#include "infer/response_stats.h"

#include "base/mem.h"
#include "os/mutex.h"

#include <string.h>

struct response_stats {
    struct mutex lock;               /* rank LEAF; guards what follows */
    struct response_stats_row *rows; /* by index, without gaps */
    size_t count;
};

struct response_stats *response_stats_new(void)
{
    struct response_stats *s = MEM_NEW(struct response_stats);
    mutex_init(&s->lock, MUTEX_RANK_LEAF);
    return s;
}

void response_stats_free(struct response_stats *s)
{
    if (!s)
        return;
    mutex_fini(&s->lock);
    mem_free(s->rows);
    mem_free(s);
}

static struct err *check_times(enum response_stats_outcome outcome,
                               const struct response_stats_times *t)
{
    bool outputs = outcome == RESPONSE_STATS_SUCCESS ||
                   (outcome == RESPONSE_STATS_FAIL && t->output_start > 0);
    if (outputs && t->start > t->output_start)
        return err_new(STATUS_INVALID_ARG,
                       "Response start cannot happen after compute output start");
    if (outputs && t->output_start > t->end)
        return err_new(STATUS_INVALID_ARG, "Compute output start cannot happen after response end");
    if (t->start > t->end)
        return err_new(STATUS_INVALID_ARG, "Response start cannot happen after response end");
    return NULL;
}

/* Finds or makes the row of an index. Caller holds the lock. */
static struct response_stats_row *response_stats_row_of(struct response_stats *s, uint32_t index)
{
    if (index > RESPONSE_STATS_MAX_INDEX)
        index = RESPONSE_STATS_MAX_INDEX;
    if (index >= s->count) {
        s->rows = mem_realloc(s->rows, (index + 1u) * sizeof(*s->rows));
        memset(s->rows + s->count, 0, (index + 1u - s->count) * sizeof(*s->rows));
        while (s->count <= index) {
            s->rows[s->count].index = (uint32_t)s->count;
            s->count++;
        }
    }
    return &s->rows[index];
}

static void response_stats_add_duration(struct stats_duration *d, time_ns from, time_ns to)
{
    d->count++;
    d->ns += to - from;
}

struct err *response_stats_add(struct response_stats *s, uint32_t index,
                               enum response_stats_outcome outcome,
                               const struct response_stats_times *t)
{
    struct err *e = check_times(outcome, t);
    if (e)
        return e;
    mutex_lock(&s->lock);
    struct response_stats_row *r = response_stats_row_of(s, index);
    bool outputs = t->output_start > 0 && outcome != RESPONSE_STATS_EMPTY;
    if (outcome != RESPONSE_STATS_CANCEL)
        response_stats_add_duration(&r->compute_infer, t->start,
                                    outputs ? t->output_start : t->end);
    if (outcome == RESPONSE_STATS_SUCCESS || (outcome == RESPONSE_STATS_FAIL && outputs))
        response_stats_add_duration(&r->compute_output, t->output_start, t->end);
    switch (outcome) {
    case RESPONSE_STATS_SUCCESS:
        response_stats_add_duration(&r->success, t->start, t->end);
        break;
    case RESPONSE_STATS_EMPTY:
        response_stats_add_duration(&r->empty_response, t->start, t->end);
        break;
    case RESPONSE_STATS_FAIL:
        response_stats_add_duration(&r->fail, t->start, t->end);
        break;
    case RESPONSE_STATS_CANCEL:
        response_stats_add_duration(&r->cancel, t->start, t->end);
        break;
    }
    mutex_unlock(&s->lock);
    return NULL;
}

size_t response_stats_sum(struct response_stats *s, struct response_stats_row **ret)
{
    mutex_lock(&s->lock);
    size_t count = s->count;
    struct response_stats_row *copy = mem_alloc((count + 1) * sizeof(*copy));
    if (count)
        memcpy(copy, s->rows, count * sizeof(*copy));
    mutex_unlock(&s->lock);
    *ret = copy;
    return count;
}
