#include "plugin/usage.h"

#include "base/mem.h"

#include <inttypes.h>
#include <string.h>

void usage_init(struct usage *u)
{
    *u = (struct usage){0};
    mutex_init(&u->lock, MUTEX_RANK_LEAF);
}

void usage_fini(struct usage *u)
{
    mem_free(u->rows);
    mutex_fini(&u->lock);
}

static struct usage_row *usage_find(struct usage_row *rows, size_t count,
                                    const struct usage_row *row)
{
    for (size_t i = 0; i < count; i++)
        if (rows[i].memory == row->memory && rows[i].device == row->device)
            return &rows[i];
    return NULL;
}

struct err *usage_report(struct usage *u, const struct usage_row *rows, size_t count)
{
    if (count > USAGE_MAX_ROWS)
        return err_new(STATUS_INVALID_ARG, "expected at most %u memory usages, found %zu",
                       USAGE_MAX_ROWS, count);
    struct usage_row *fresh = mem_alloc((count + 1) * sizeof(*fresh));
    for (size_t i = 0; i < count; i++) {
        if ((unsigned)rows[i].memory > BUF_MEMORY_GPU || usage_find(fresh, i, &rows[i])) {
            mem_free(fresh);
            return err_new(STATUS_INVALID_ARG,
                           "a report of memory usage names memory type %d with id %" PRId64
                           ", which is no type or stands there twice",
                           (int)rows[i].memory, rows[i].device);
        }
        fresh[i] = rows[i];
    }
    mutex_lock(&u->lock);
    struct usage_row *old = u->rows;
    u->rows = fresh;
    u->count = count;
    mutex_unlock(&u->lock);
    mem_free(old);
    return NULL;
}

void usage_sum(struct usage *u, struct usage_row **list, size_t *count)
{
    mutex_lock(&u->lock);
    for (size_t i = 0; i < u->count; i++) {
        struct usage_row *there = usage_find(*list, *count, &u->rows[i]);
        if (there) {
            there->bytes += u->rows[i].bytes;
            continue;
        }
        *list = mem_realloc(*list, (*count + 1) * sizeof(**list));
        (*list)[(*count)++] = u->rows[i];
    }
    mutex_unlock(&u->lock);
}
