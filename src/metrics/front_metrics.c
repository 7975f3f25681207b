#include "metrics/front_metrics.h"

#include "base/check.h"
#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"
#include "os/mutex.h"

#include <stdio.h>
#include <string.h>

#define MAX_MODELS (FRONT_METRICS_PAGES * FRONT_METRICS_PAGE_MODELS)

/* A model's name with its number. */
struct named {
    struct list node; /* linked into `gone` while it has no user */
    char *name;
    uint32_t id;
    uint32_t users; /* number of versions */
};

/* The codes that are counted separately; the last entry of each table counts all other codes. */
static const int http_codes[FRONT_METRICS_CODES] = {200, 400, 404, 405, 403, 408, 411, 413,
                                                    414, 415, 417, 429, 431, 499, 500, 501,
                                                    502, 503, 504, 505, 401, 409, 507, 0};
static const char *const grpc_codes[] = {"OK",
                                         "CANCELLED",
                                         "UNKNOWN",
                                         "INVALID_ARGUMENT",
                                         "DEADLINE_EXCEEDED",
                                         "NOT_FOUND",
                                         "ALREADY_EXISTS",
                                         "PERMISSION_DENIED",
                                         "RESOURCE_EXHAUSTED",
                                         "FAILED_PRECONDITION",
                                         "ABORTED",
                                         "OUT_OF_RANGE",
                                         "UNIMPLEMENTED",
                                         "INTERNAL",
                                         "UNAVAILABLE",
                                         "DATA_LOSS",
                                         "UNAUTHENTICATED",
                                         "OTHER"};
#define GRPC_CODES (sizeof(grpc_codes) / sizeof(*grpc_codes))

/* Rank LEAF; guards the variables below. One set for the process, like the metrics of the C API. */
static struct mutex lock = MUTEX_INIT(MUTEX_RANK_LEAF);
static struct front_metrics *all;
static struct named **models;           /* name number i is at i - 1 */
static struct map model_ids = MAP_INIT; /* name -> named */
static uint32_t model_count;
static struct list gone = {&gone, &gone}; /* names without users, the oldest first */
static uint32_t gone_count;

struct front_metrics *front_metrics_new(const struct front_metrics_kind *kind)
{
    CHECK(kind->route_count <= FRONT_METRICS_ROUTES);
    struct front_metrics *f = MEM_NEW(struct front_metrics);
    f->kind = kind;
    mutex_lock(&lock);
    f->next = all;
    all = f;
    mutex_unlock(&lock);
    return f;
}

void front_metrics_free(struct front_metrics *f)
{
    if (!f)
        return;
    mutex_lock(&lock);
    struct front_metrics **at = &all;
    while (*at != f)
        at = &(*at)->next;
    *at = f->next;
    mutex_unlock(&lock);
    for (size_t p = 0; p < FRONT_METRICS_PAGES; p++) {
        struct front_metrics_page *page = atomic_load_explicit(&f->pages[p], memory_order_relaxed);
        for (size_t i = 0; page && i < FRONT_METRICS_PAGE_MODELS; i++)
            mem_free(atomic_load_explicit(&page->models[i], memory_order_relaxed));
        mem_free(page);
    }
    mem_free(f);
}

static unsigned code_index(bool grpc, int code)
{
    if (grpc)
        return code >= 0 && (size_t)code < GRPC_CODES ? (unsigned)code : (unsigned)GRPC_CODES - 1;
    unsigned i = 0;
    while (i < FRONT_METRICS_CODES - 1 && http_codes[i] != code)
        i++;
    return i;
}

/* The counters of a model; made when they are first needed. */
static struct front_metrics_model *front_metrics_model_of(struct front_metrics *f, uint32_t id)
{
    uint32_t p = id / FRONT_METRICS_PAGE_MODELS, i = id % FRONT_METRICS_PAGE_MODELS;
    struct front_metrics_page *page = atomic_load_explicit(&f->pages[p], memory_order_relaxed);
    if (!page) {
        page = MEM_NEW(struct front_metrics_page);
        atomic_store_explicit(&f->pages[p], page, memory_order_release);
    }
    struct front_metrics_model *m = atomic_load_explicit(&page->models[i], memory_order_relaxed);
    if (!m) {
        m = MEM_NEW(struct front_metrics_model);
        atomic_store_explicit(&page->models[i], m, memory_order_release);
    }
    return m;
}

void front_metrics_end(struct front_metrics *f, unsigned route, uint32_t model, int code)
{
    front_metrics_failed(f, route, model, code);
    front_metrics_add(&f->ended, 1);
}

void front_metrics_failed(struct front_metrics *f, unsigned route, uint32_t model, int code)
{
    unsigned c = code_index(f->kind->grpc, code);
    int slot = f->kind->routes[route].model_slot;
    if (model && slot >= 0)
        front_metrics_add(&front_metrics_model_of(f, model)->counts[slot][c], 1);
    else
        front_metrics_add(&f->routes[route][c], 1);
}

/* Resets the counters of a number. Caller holds the lock. */
static void clear_model(uint32_t id)
{
    for (const struct front_metrics *f = all; f; f = f->next) {
        const struct front_metrics_page *page =
            atomic_load_explicit(&f->pages[id / FRONT_METRICS_PAGE_MODELS], memory_order_acquire);
        struct front_metrics_model *m =
            page ? atomic_load_explicit(&page->models[id % FRONT_METRICS_PAGE_MODELS],
                                        memory_order_acquire)
                 : NULL;
        for (unsigned slot = 0; m && slot < FRONT_METRICS_MODEL_SLOTS; slot++)
            for (unsigned c = 0; c < FRONT_METRICS_CODES; c++)
                atomic_store_explicit(&m->counts[slot][c], 0, memory_order_relaxed);
    }
}

/* A number for a new name: if enough names are unused, that of the oldest unused name. Caller
 * holds the lock. */
static struct named *number_for(const char *name)
{
    struct named *n;
    if (gone_count >= FRONT_METRICS_GONE) {
        n = LIST_ITEM(list_pop(&gone), struct named, node);
        gone_count--;
        map_remove(&model_ids, n->name, strlen(n->name));
        mem_free(n->name);
        clear_model(n->id);
    } else if (model_count + 1 < MAX_MODELS) {
        if ((model_count & (model_count + 1)) == 0) /* make room for the next power of two */
            models = mem_realloc(models, (2 * model_count + 1) * sizeof(struct named *));
        n = MEM_NEW(struct named);
        list_init(&n->node);
        models[model_count] = n;
        n->id = ++model_count;
    } else {
        return NULL;
    }
    n->name = mem_strdup(name);
    map_put(&model_ids, name, strlen(name), n);
    return n;
}

uint32_t front_metrics_model_id(const char *name)
{
    mutex_lock(&lock);
    struct named *n = map_get(&model_ids, name, strlen(name));
    if (n && !n->users) {
        list_remove(&n->node);
        gone_count--;
    }
    if (!n)
        n = number_for(name);
    if (n)
        n->users++;
    mutex_unlock(&lock);
    return n ? n->id : 0;
}

void front_metrics_model_left(uint32_t id)
{
    if (!id)
        return;
    mutex_lock(&lock);
    struct named *n = models[id - 1];
    if (!--n->users) {
        list_append(&gone, &n->node);
        gone_count++;
    }
    mutex_unlock(&lock);
}

void front_metrics_model_name(uint32_t id, char *to, size_t size)
{
    mutex_lock(&lock);
    snprintf(to, size, "%s", id ? models[id - 1]->name : "");
    mutex_unlock(&lock);
}

static const char *code_name(bool grpc, unsigned c, char *room, size_t room_bytes)
{
    if (grpc)
        return grpc_codes[c];
    if (!http_codes[c])
        return "other";
    snprintf(room, room_bytes, "%d", http_codes[c]);
    return room;
}

static void add_requests(struct metrics_process *p, const struct front_metrics_kind *kind,
                         unsigned route, const char *model, unsigned code, uint64_t count)
{
    if (!count)
        return;
    struct metrics_requests *r =
        mem_realloc((void *)(uintptr_t)p->requests, (p->request_count + 1) * sizeof(*p->requests));
    p->requests = r;
    r += p->request_count++;
    *r = (struct metrics_requests){.protocol = kind->protocol,
                                   .route = kind->routes[route].name,
                                   .model = model ? mem_strdup(model) : NULL,
                                   .count = count};
    const char *name = code_name(kind->grpc, code, r->code, sizeof(r->code));
    if (name != r->code)
        snprintf(r->code, sizeof(r->code), "%s", name);
}

static uint64_t value(const front_metrics_count_t *count)
{
    return atomic_load_explicit(count, memory_order_relaxed);
}

static uint64_t model_value(const struct front_metrics *f, uint32_t id, int slot, unsigned code)
{
    const struct front_metrics_page *page =
        atomic_load_explicit(&f->pages[id / FRONT_METRICS_PAGE_MODELS], memory_order_acquire);
    const struct front_metrics_model *m =
        page ? atomic_load_explicit(&page->models[id % FRONT_METRICS_PAGE_MODELS],
                                    memory_order_acquire)
             : NULL;
    return m ? value(&m->counts[slot][code]) : 0;
}

/* Sums over the workers of one front end. Caller holds the lock. */
static void read_route(struct metrics_process *p, const struct front_metrics_kind *kind,
                       unsigned route)
{
    int slot = kind->routes[route].model_slot;
    for (unsigned c = 0; c < FRONT_METRICS_CODES; c++) {
        uint64_t sum = 0;
        for (const struct front_metrics *f = all; f; f = f->next)
            sum += f->kind == kind ? value(&f->routes[route][c]) : 0;
        add_requests(p, kind, route, NULL, c, sum);
        for (uint32_t id = 1; slot >= 0 && id <= model_count; id++) {
            sum = 0;
            for (const struct front_metrics *f = all; f; f = f->next)
                sum += f->kind == kind ? model_value(f, id, slot, c) : 0;
            add_requests(p, kind, route, models[id - 1]->name, c, sum);
        }
    }
}

static void front_metrics_read_kind(struct metrics_process *p,
                                    const struct front_metrics_kind *kind)
{
    struct metrics_front *fronts =
        mem_realloc((void *)(uintptr_t)p->fronts, (p->front_count + 1) * sizeof(*p->fronts));
    struct metrics_front *sum = &fronts[p->front_count++];
    p->fronts = fronts;
    *sum = (struct metrics_front){.protocol = kind->protocol};
    for (const struct front_metrics *f = all; f; f = f->next) {
        if (f->kind != kind)
            continue;
        uint64_t ended = value(&f->ended), closed = value(&f->closed);
        uint64_t begun = value(&f->begun), opened = value(&f->opened);
        sum->in_flight += begun > ended ? begun - ended : 0;
        sum->connections += opened > closed ? opened - closed : 0;
        sum->accepted += opened;
        sum->received_bytes += value(&f->received_bytes);
        sum->sent_bytes += value(&f->sent_bytes);
    }
    for (unsigned route = 0; route < kind->route_count; route++)
        read_route(p, kind, route);
}

void front_metrics_read(struct metrics_process *process)
{
    mutex_lock(&lock);
    for (const struct front_metrics *f = all; f; f = f->next) {
        const struct front_metrics *first = all;
        while (first->kind != f->kind)
            first = first->next;
        if (first == f)
            front_metrics_read_kind(process, f->kind);
    }
    mutex_unlock(&lock);
}

void front_metrics_read_free(struct metrics_process *process)
{
    mem_free((void *)(uintptr_t)process->fronts);
    for (size_t i = 0; i < process->request_count; i++)
        mem_free((void *)(uintptr_t)process->requests[i].model);
    mem_free((void *)(uintptr_t)process->requests);
    process->fronts = NULL;
    process->requests = NULL;
    process->front_count = process->request_count = 0;
}
