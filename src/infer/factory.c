#include "infer/factory.h"

#include "base/list.h"
#include "base/log.h"
#include "base/slab.h"
#include "infer/request.h"
#include "model/config.h"
#include "os/mutex.h"

#define SHARDS  16u
#define AT_ONCE 64u /* the most factories that are taken under the lock at one time */

struct factory {
    struct list node;        /* in its shard */
    struct request *request; /* a reference */
    time_ns over;            /* time of the first sweep that found the request over; 0 = none did */
};

/* All factories of a request are in one shard, and their handles name the shard. So the same
 * lock guards looking a handle up and taking it back. */
struct shard {
    /* rank LEAF; guards the factories, and `factories` of their requests */
    _Alignas(64) struct mutex lock;
    struct list live;
};

#define SHARD(i)                                                                          \
    {                                                                                     \
        .lock = MUTEX_INIT(MUTEX_RANK_LEAF), .live = { &shards[i].live, &shards[i].live } \
    }

static struct shard shards[SHARDS] = {
    SHARD(0), SHARD(1), SHARD(2),  SHARD(3),  SHARD(4),  SHARD(5),  SHARD(6),  SHARD(7),
    SHARD(8), SHARD(9), SHARD(10), SHARD(11), SHARD(12), SHARD(13), SHARD(14), SHARD(15),
};

static const struct slab slab = {
    .kind = SLAB_FACTORY, .object_bytes = sizeof(struct factory), .tokens = true};

static uint32_t shard_index(const struct request *r)
{
    return slab_token(r) % SHARDS;
}

static struct shard *shard_of(const void *handle)
{
    return &shards[token_part(handle) % SHARDS];
}

static void *factory_handle(const struct factory *f)
{
    return token_make(slab_token(f), TOKEN_FACTORY, shard_index(f->request));
}

void *factory_new(struct request *request)
{
    struct factory *f = slab_alloc(&slab);
    *f = (struct factory){.request = request_ref(request)};
    void *handle = factory_handle(f);
    struct shard *s = shard_of(handle);
    mutex_lock(&s->lock);
    request->factories++;
    list_append(&s->live, &f->node);
    mutex_unlock(&s->lock);
    return handle;
}

struct request *factory_request(const void *handle)
{
    struct shard *s = shard_of(handle);
    mutex_lock(&s->lock);
    const struct factory *f = token_find(handle, TOKEN_FACTORY, NULL);
    struct request *r = f ? request_ref(f->request) : NULL;
    mutex_unlock(&s->lock);
    return r;
}

/* Makes the handle stale; the caller then frees the factory. Returns NULL if the handle was
 * stale already. Lock held. */
static struct factory *factory_take(const void *handle)
{
    struct factory *f = token_take(handle, TOKEN_FACTORY);
    if (!f)
        return NULL;
    list_remove(&f->node);
    f->request->factories--;
    return f;
}

static void factory_end(struct factory *f)
{
    request_unref(f->request);
    slab_free(&slab, f);
}

bool factory_delete(const void *handle)
{
    struct shard *s = shard_of(handle);
    mutex_lock(&s->lock);
    struct factory *f = factory_take(handle);
    mutex_unlock(&s->lock);
    if (f)
        factory_end(f);
    return f;
}

/* True if only factories hold the request and its final response was sent, so that nothing more
 * can be sent. The lock is held, so no factory is made or deleted, and a thread that holds no
 * other reference cannot get one. Acquire: everything that others did before they released their
 * reference has happened. */
static bool factory_is_over(struct request *r)
{
    return atomic_load_explicit(&r->refs, memory_order_acquire) == r->factories &&
           atomic_load_explicit(&r->final_sent, memory_order_relaxed);
}

/* Marks the factories whose request is over, and takes up to AT_ONCE of those that were marked
 * long enough ago. */
static size_t factory_gather(struct shard *s, time_ns now, struct factory **ret)
{
    size_t count = 0;
    mutex_lock(&s->lock);
    LIST_EACH (node, &s->live) {
        struct factory *f = LIST_ITEM(node, struct factory, node);
        if (count == AT_ONCE)
            break;
        if (!factory_is_over(f->request))
            continue;
        if (!f->over)
            f->over = now;
        if (now - f->over >= FACTORY_GRACE_NS)
            ret[count++] = factory_take(factory_handle(f));
    }
    mutex_unlock(&s->lock);
    return count;
}

size_t factory_sweep(time_ns now)
{
    size_t sum = 0;
    for (unsigned i = 0; i < SHARDS; i++) {
        struct factory *late[AT_ONCE];
        size_t count;
        /* A request with several factories needs several rounds: each factory holds a reference. */
        while ((count = factory_gather(&shards[i], now, late))) {
            for (size_t k = 0; k < count; k++) {
                const struct model_config *c = late[k]->request->config;
                LOG_WARN("backend '%s' of model '%s' broke a rule: it did not delete the response "
                         "factory of a request that it had answered for good and released",
                         c->backend, c->name);
                factory_end(late[k]);
            }
            sum += count;
        }
    }
    return sum;
}
