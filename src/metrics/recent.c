#include "metrics/recent.h"

#include "base/mem.h"
#include "metrics/front_metrics.h"
#include "os/clock.h"
#include "os/mutex.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct recent {
    struct mutex lock;           /* rank LEAF; guards all fields */
    struct recent_failure *kept; /* room for RECENT_MOST; NULL before the first */
    uint32_t count;
    uint64_t noted;
};

struct recent *recent_new(void)
{
    struct recent *r = MEM_NEW(struct recent);
    mutex_init(&r->lock, MUTEX_RANK_LEAF);
    return r;
}

void recent_free(struct recent *r)
{
    if (!r)
        return;
    mutex_fini(&r->lock);
    mem_free(r->kept);
    mem_free(r);
}

/* Copies a text, cut where a character ends. */
static void copy_cut(char *to, size_t size, const char *text)
{
    size_t len = strnlen(text, size);
    if (len == size)
        for (len--; len && ((unsigned char)text[len] & 0xC0) == 0x80;)
            len--;
    memcpy(to, text, len);
    to[len] = '\0';
}

/* The place for a new failure of a model: a free one, or that of the oldest. */
static struct recent_failure *place_for(struct recent *r, const char *model)
{
    struct recent_failure *oldest = r->kept, *own = NULL;
    uint32_t of_model = 0;
    for (uint32_t i = 0; i < r->count; i++) {
        struct recent_failure *f = &r->kept[i];
        if (f->order < oldest->order)
            oldest = f;
        if (strcmp(f->model, model) != 0)
            continue;
        of_model++;
        if (!own || f->order < own->order)
            own = f;
    }
    if (of_model >= RECENT_OF_MODEL)
        return own;
    return r->count < RECENT_MOST ? &r->kept[r->count++] : oldest;
}

static struct recent_failure *recent_find(const struct recent *r, const struct recent_failure *f)
{
    for (uint32_t i = 0; i < r->count; i++)
        if (r->kept[i].kind == f->kind && strcmp(r->kept[i].text, f->text) == 0 &&
            strcmp(r->kept[i].model, f->model) == 0)
            return &r->kept[i];
    return NULL;
}

/* f has its kind, model and text. */
static void recent_keep(struct recent *r, struct recent_failure *f)
{
    f->first_ms = f->last_ms = clock_wall_ns() / 1000000;
    f->count = 1;
    mutex_lock(&r->lock);
    f->order = ++r->noted;
    if (!r->kept)
        r->kept = mem_zalloc(RECENT_MOST * sizeof(*r->kept));
    struct recent_failure *same = recent_find(r, f);
    if (same) {
        same->count++;
        same->last_ms = f->last_ms;
        same->order = f->order;
    } else {
        *place_for(r, f->model) = *f;
    }
    mutex_unlock(&r->lock);
}

void recent_request(struct recent *r, uint32_t model, const char *text)
{
    if (!r)
        return;
    struct recent_failure f = {.kind = RECENT_REQUEST};
    front_metrics_model_name(model, f.model, sizeof(f.model));
    copy_cut(f.text, sizeof(f.text), text);
    recent_keep(r, &f);
}

void recent_load(struct recent *r, const char *model, int64_t version, const char *text)
{
    if (!r)
        return;
    struct recent_failure f = {.kind = RECENT_LOAD};
    copy_cut(f.model, sizeof(f.model), model);
    int used = version ? snprintf(f.text, sizeof(f.text), "version %" PRId64 ": ", version) : 0;
    copy_cut(f.text + used, sizeof(f.text) - (size_t)used, text);
    recent_keep(r, &f);
}

uint64_t recent_noted(struct recent *r)
{
    mutex_lock(&r->lock);
    uint64_t noted = r->noted;
    mutex_unlock(&r->lock);
    return noted;
}

static int compare_newest(const void *a, const void *b)
{
    const struct recent_failure *x = a, *y = b;
    return x->order < y->order ? 1 : -1;
}

size_t recent_read(struct recent *r, struct recent_failure **ret)
{
    struct recent_failure *all = NULL;
    mutex_lock(&r->lock);
    size_t count = r->count;
    if (count) {
        all = mem_alloc(count * sizeof(*all));
        memcpy(all, r->kept, count * sizeof(*all));
    }
    mutex_unlock(&r->lock);
    if (count)
        qsort(all, count, sizeof(*all), compare_newest);
    *ret = all;
    return count;
}
