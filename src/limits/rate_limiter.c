#include "limits/rate_limiter.h"

#include "base/check.h"
#include "base/list.h"
#include "base/mem.h"

#include <inttypes.h>
#include <string.h>

#define GLOBAL (-2) /* used instead of a device; global resources sort before those of devices */

/* A resource that at least one instance needs. */
struct limited_resource {
    struct list node;
    char *name;
    int32_t device; /* or GLOBAL */
    uint64_t limit;
    uint64_t in_use;
    uint64_t ahead; /* used in rate_limiter_next: how much the earlier waiting instances need */
    uint64_t clock; /* the scaled priority of the instance that took some of it last */
    uint32_t users; /* number of instances that need it */
    bool taken;     /* used in overtake: the overtaking instance took some of it */
};

struct share {
    struct limited_resource *pool;
    uint64_t count;
};

struct rate_limiter {
    struct rate_limiter_supply *supplies; /* owned, with their names */
    size_t supply_count;
    struct list pools;     /* by device, then by name */
    struct list instances; /* all */
    struct list waiting;   /* in the order in which they get resources */
    uint64_t arrivals;     /* counts how often an instance began to wait */
};

struct rate_limiter_instance {
    struct list node;
    struct list wait; /* linked into limiter->waiting while it waits */
    struct rate_limiter *limiter;
    void *owner;
    struct share *shares; /* owned; share_count items, each pool once */
    size_t share_count;
    uint64_t priority;
    uint64_t scaled;
    enum rate_limiter_state state;
    uint64_t arrival;   /* while waiting: its number among all arrivals */
    uint64_t overtaken; /* while waiting: how often it was overtaken */
    bool urgent;        /* while waiting: it was overtaken too often */
};

struct rate_limiter *rate_limiter_new(const struct rate_limiter_supply *supplies, size_t count)
{
    struct rate_limiter *l = MEM_NEW(struct rate_limiter);
    l->supplies = mem_zalloc((count + 1) * sizeof(*l->supplies));
    l->supply_count = count;
    for (size_t i = 0; i < count; i++) {
        l->supplies[i] = supplies[i];
        l->supplies[i].name = mem_strdup(supplies[i].name);
    }
    list_init(&l->pools);
    list_init(&l->instances);
    list_init(&l->waiting);
    return l;
}

void rate_limiter_free(struct rate_limiter *l)
{
    if (!l)
        return;
    CHECK(list_empty(&l->instances) && list_empty(&l->pools));
    for (size_t i = 0; i < l->supply_count; i++)
        mem_free((char *)(uintptr_t)l->supplies[i].name);
    mem_free(l->supplies);
    mem_free(l);
}

/* -- resources -- */

static struct limited_resource *pool_of(struct list *node)
{
    return LIST_ITEM(node, struct limited_resource, node);
}

/* Compares for the order of the pools: < 0, 0 or > 0. */
static int rate_limiter_order(const char *name, int32_t device, const struct limited_resource *p)
{
    return device != p->device ? (device > p->device) - (device < p->device)
                               : strcmp(name, p->name);
}

static struct limited_resource *find_pool(const struct rate_limiter *l, const char *name,
                                          int32_t device)
{
    LIST_EACH (node, &l->pools)
        if (rate_limiter_order(name, device, pool_of(node)) == 0)
            return pool_of(node);
    return NULL;
}

static struct limited_resource *get_pool(struct rate_limiter *l, const char *name, int32_t device)
{
    struct list *at = l->pools.next;
    while (at != &l->pools && rate_limiter_order(name, device, pool_of(at)) > 0)
        at = at->next;
    if (at != &l->pools && rate_limiter_order(name, device, pool_of(at)) == 0)
        return pool_of(at);
    struct limited_resource *p = MEM_NEW(struct limited_resource);
    p->name = mem_strdup(name);
    p->device = device;
    list_insert_before(at, &p->node);
    return p;
}

static uint64_t largest_need(const struct rate_limiter *l, const struct limited_resource *p)
{
    uint64_t most = 0;
    LIST_EACH (node, &l->instances) {
        struct rate_limiter_instance *i = LIST_ITEM(node, struct rate_limiter_instance, node);
        for (size_t k = 0; k < i->share_count; k++)
            if (i->shares[k].pool == p && i->shares[k].count > most)
                most = i->shares[k].count;
    }
    return most;
}

static uint64_t supply_of(const struct rate_limiter *l, const struct limited_resource *p)
{
    uint64_t most = 0;
    for (size_t k = 0; k < l->supply_count; k++) {
        const struct rate_limiter_supply *s = &l->supplies[k];
        bool here =
            p->device == GLOBAL || s->device == p->device || s->device == RATE_LIMITER_EVERY_DEVICE;
        if (here && s->count > most && strcmp(s->name, p->name) == 0)
            most = s->count;
    }
    return most;
}

static void set_limit(const struct rate_limiter *l, struct limited_resource *p)
{
    p->limit = l->supply_count ? supply_of(l, p) : largest_need(l, p);
}

/* True if the name is used both for a global resource and for one of a device. */
static bool is_of_both_kinds(const struct rate_limiter *l, const struct limited_resource *p)
{
    LIST_EACH (node, &l->pools) {
        struct limited_resource *other = pool_of(node);
        if ((other->device == GLOBAL) != (p->device == GLOBAL) && strcmp(other->name, p->name) == 0)
            return true;
    }
    return false;
}

/* -- instances -- */

static void put_share(struct rate_limiter_instance *i, struct limited_resource *p, uint64_t count)
{
    for (size_t k = 0; k < i->share_count; k++)
        if (i->shares[k].pool == p) {
            i->shares[k].count = count;
            return;
        }
    p->users++;
    i->shares[i->share_count++] = (struct share){.pool = p, .count = count};
}

/* Checks in the order of the pools, so that of two errors always the same one is reported. */
static struct err *check_shares(const struct rate_limiter_instance *i)
{
    struct rate_limiter *l = i->limiter;
    LIST_EACH (node, &l->pools) {
        struct limited_resource *p = pool_of(node);
        for (size_t k = 0; l->supply_count && k < i->share_count; k++)
            if (i->shares[k].pool == p && i->shares[k].count > p->limit)
                return err_new(STATUS_INVALID_ARG,
                               "Resource count for \"%s\" is limited to %" PRIu64
                               " which will prevent scheduling of one or more model instances, "
                               "the minimum required count is %" PRIu64,
                               p->name, p->limit, i->shares[k].count);
    }
    for (size_t k = 0; k < i->share_count; k++)
        if (is_of_both_kinds(l, i->shares[k].pool))
            return err_new(STATUS_INVALID_ARG,
                           "Resource \"%s\" is present as both global and device-specific "
                           "resource in the model configuration.",
                           i->shares[k].pool->name);
    return NULL;
}

static void drop_share(struct rate_limiter *l, struct limited_resource *p)
{
    if (--p->users) {
        set_limit(l, p);
        return;
    }
    list_remove(&p->node);
    mem_free(p->name);
    mem_free(p);
}

struct err *rate_limiter_add(struct rate_limiter *l, const struct rate_limiter_terms *terms,
                             void *owner, struct rate_limiter_instance **ret)
{
    struct rate_limiter_instance *i = MEM_NEW(struct rate_limiter_instance);
    i->limiter = l;
    i->owner = owner;
    i->priority = terms->priority ? terms->priority : 1;
    i->shares = mem_zalloc((terms->need_count + 1) * sizeof(*i->shares));
    list_init(&i->wait);
    list_append(&l->instances, &i->node);
    for (size_t k = 0; k < terms->need_count; k++) {
        const struct rate_limiter_need *n = &terms->needs[k];
        put_share(i, get_pool(l, n->name, n->global ? GLOBAL : terms->device), n->count);
    }
    for (size_t k = 0; k < i->share_count; k++)
        set_limit(l, i->shares[k].pool);
    struct err *e = check_shares(i);
    if (e) {
        rate_limiter_remove(i);
        return e;
    }
    *ret = i;
    return NULL;
}

void rate_limiter_remove(struct rate_limiter_instance *i)
{
    if (!i)
        return;
    rate_limiter_done(i, false);
    list_remove(&i->node);
    for (size_t k = 0; k < i->share_count; k++)
        drop_share(i->limiter, i->shares[k].pool);
    mem_free(i->shares);
    mem_free(i);
}

/* -- the order -- */

static bool is_before(const struct rate_limiter_instance *a, const struct rate_limiter_instance *b)
{
    if (a->urgent != b->urgent)
        return a->urgent;
    if (!a->urgent && a->scaled != b->scaled)
        return a->scaled < b->scaled;
    return a->arrival < b->arrival;
}

static struct rate_limiter_instance *waiting_of(struct list *node)
{
    return LIST_ITEM(node, struct rate_limiter_instance, wait);
}

static void rate_limiter_insert(struct rate_limiter_instance *i)
{
    struct list *at = i->limiter->waiting.next;
    while (at != &i->limiter->waiting && !is_before(i, waiting_of(at)))
        at = at->next;
    list_insert_before(at, &i->wait);
}

/* The least scaled priority that a new arrival gets: an instance that was idle does not catch up
 * on what it missed. */
static uint64_t clock_of(const struct rate_limiter_instance *i)
{
    uint64_t least = i->share_count ? UINT64_MAX : 0;
    for (size_t k = 0; k < i->share_count; k++)
        least = i->shares[k].pool->clock < least ? i->shares[k].pool->clock : least;
    return least;
}

static void begin_to_wait(struct rate_limiter_instance *i)
{
    CHECK(i->state == RATE_LIMITER_IDLE);
    i->arrival = i->limiter->arrivals++;
    i->overtaken = 0;
    i->urgent = false;
    i->state = RATE_LIMITER_WAITS;
    rate_limiter_insert(i);
}

void rate_limiter_want(struct rate_limiter_instance *i)
{
    i->scaled = i->scaled > clock_of(i) ? i->scaled : clock_of(i);
    begin_to_wait(i);
}

void rate_limiter_again(struct rate_limiter_instance *i)
{
    rate_limiter_done(i, true);
    begin_to_wait(i);
}

void rate_limiter_done(struct rate_limiter_instance *i, bool executed)
{
    CHECK(!executed || i->state == RATE_LIMITER_HOLDS);
    list_remove(&i->wait);
    for (size_t k = 0; i->state == RATE_LIMITER_HOLDS && k < i->share_count; k++)
        i->shares[k].pool->in_use -= i->shares[k].count;
    i->state = RATE_LIMITER_IDLE;
    if (executed)
        i->scaled += i->priority;
}

/* True if the overtaking instance took something that this one now lacks. */
static bool lacks_what_was_taken(const struct rate_limiter_instance *i)
{
    for (size_t k = 0; k < i->share_count; k++) {
        const struct limited_resource *p = i->shares[k].pool;
        if (p->taken && (p->in_use > p->limit || i->shares[k].count > p->limit - p->in_use))
            return true;
    }
    return false;
}

/* True if it was overtaken too often: each rival may go first as often as its priority allows,
 * and once more. */
static bool is_too_often(const struct rate_limiter_instance *i)
{
    uint64_t rivals = 0;
    for (size_t k = 0; k < i->share_count; k++)
        rivals += i->shares[k].pool->users - 1;
    return i->overtaken > (i->priority + 1) * rivals;
}

static void mark_taken(const struct rate_limiter_instance *by, bool taken)
{
    for (size_t k = 0; k < by->share_count; k++)
        by->shares[k].pool->taken = taken && by->shares[k].count;
}

/* An instance has got its resources; earlier instances that still wait were overtaken. */
static void overtake(const struct rate_limiter_instance *by)
{
    struct rate_limiter *l = by->limiter;
    struct list urgent;
    list_init(&urgent);
    mark_taken(by, true);
    LIST_EACH (node, &l->waiting) {
        struct rate_limiter_instance *i = waiting_of(node);
        if (i->urgent || i->arrival > by->arrival || !lacks_what_was_taken(i))
            continue;
        i->overtaken++;
        i->urgent = is_too_often(i);
        if (!i->urgent)
            continue;
        list_remove(&i->wait);
        list_append(&urgent, &i->wait);
    }
    mark_taken(by, false);
    struct list *node;
    while ((node = list_pop(&urgent)))
        rate_limiter_insert(waiting_of(node));
}

static bool rate_limiter_fits(const struct rate_limiter_instance *i)
{
    for (size_t k = 0; k < i->share_count; k++) {
        const struct limited_resource *p = i->shares[k].pool;
        uint64_t taken = p->in_use + p->ahead;
        if (i->shares[k].count && (taken > p->limit || i->shares[k].count > p->limit - taken))
            return false;
    }
    return true;
}

struct rate_limiter_instance *rate_limiter_next(struct rate_limiter *l)
{
    LIST_EACH (pool, &l->pools)
        pool_of(pool)->ahead = 0;
    LIST_EACH (node, &l->waiting) {
        struct rate_limiter_instance *i = waiting_of(node);
        if (!rate_limiter_fits(i)) {
            for (size_t k = 0; k < i->share_count; k++)
                i->shares[k].pool->ahead += i->shares[k].count;
            continue;
        }
        list_remove(&i->wait);
        i->state = RATE_LIMITER_HOLDS;
        for (size_t k = 0; k < i->share_count; k++) {
            i->shares[k].pool->in_use += i->shares[k].count;
            if (i->shares[k].pool->clock < i->scaled)
                i->shares[k].pool->clock = i->scaled;
        }
        overtake(i);
        return i;
    }
    return NULL;
}

enum rate_limiter_state rate_limiter_state(const struct rate_limiter_instance *i)
{
    return i->state;
}

void *rate_limiter_owner(const struct rate_limiter_instance *i)
{
    return i->owner;
}

uint64_t rate_limiter_scaled(const struct rate_limiter_instance *i)
{
    return i->scaled;
}

uint64_t rate_limiter_available(const struct rate_limiter *l, const char *name, bool global,
                                int32_t device, uint64_t *ret_in_use)
{
    const struct limited_resource *p = find_pool(l, name, global ? GLOBAL : device);
    *ret_in_use = p ? p->in_use : 0;
    return p ? p->limit : 0;
}
