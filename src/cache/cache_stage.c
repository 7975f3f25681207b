#include "cache/cache_stage.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "infer/response.h"
#include "infer/stats.h"
#include "model/config.h"
#include "os/crew.h"
#include "os/files/stamp.h"
#include "cache/cache_plugin.h"
#include "proto/model_config.pb-c.h"
#include "cache/cache_key.h"
#include "cache/cache_pack.h"
#include "serve/scheduler.h"
#include "serve/submit.h"
#include "serve/version.h"
#include "server/options/options_cache.h"

#include <inttypes.h>
#include <string.h>

/* Larger answers are not copied on a network thread. */
#define INLINE_BYTES (256u << 10)

/* A parameter of a model. If it is set, its value replaces the state of the model's files in the
 * key. */
#define FILES_PARAMETER "RESPONSE_CACHE_ID"

/* The threads that wait for the cache, so that network threads and instances do not. */
static const struct crew_kind waiters = {.name = "cache", .most = 8, .idle = TIME_S(10)};

struct cache_stage {
    struct cache_plugin *plugin;
    struct crew *crew;
    /* When the set of serving versions last changed. Stored with release after the versions were
     * published, and read with acquire before a version is looked up. So an answer of an older
     * version is never stored under a newer time. */
    _Atomic(time_ns) changed;
};

struct cache_model {
    struct scheduler_wrap base;
    struct cache_stage *stage;
    struct cache_key_model key;
    /* an ensemble: its answers depend on other versions, which its key does not contain */
    bool follows;
    bool ensemble;     /* a step may be a model whose answers depend on the requests before */
    atomic_bool large; /* relaxed: an answer was too large to copy on a network thread */
};

/* The cache's data of a request; in the request's arena. */
struct cache_ticket {
    struct crew_job job;
    struct request *request;
    request_hold_fn next;      /* the hold function of the next wrapper; NULL = none */
    struct response *response; /* the response that is being inserted */
    time_ns changed;           /* for a model that follows: see cache_stage */
    time_ns lookup_start;
    uint64_t lookup_ns;
    bool answered; /* one of several responses was sent */
    char key[CACHE_KEY_TEXT + 1];
};

/* One call of the cache; TRITONCACHE_Copy calls the copier. */
struct transfer {
    struct cache_entry_copier copier;
    struct request *request;
    struct response *response; /* lookup: made by the copier */
    bool done;
};

static struct err *open_cache(const struct options *o, void **ret_own)
{
    struct cache_plugin *plugin = NULL;
    const char *name;
    char *config;
    struct err *e = options_cache_config(o, &name, &config);
    if (!e && name)
        e = cache_plugin_load(o->cache_directory, name, config, &plugin);
    mem_free(config);
    if (e || !plugin)
        return e;
    struct cache_stage *s = MEM_NEW(struct cache_stage);
    s->plugin = plugin;
    s->crew = crew_new(&waiters, NULL);
    *ret_own = s;
    return NULL;
}

static void close_cache(void *own)
{
    struct cache_stage *s = own;
    if (!s)
        return;
    crew_free(s->crew);
    cache_plugin_free(s->plugin);
    mem_free(s);
}

/* A text that represents the files of a model. */
static struct err *look_at_files(const void *own, const char *model_dir, char **ret)
{
    if (!own)
        return NULL;
    uint64_t stamp;
    struct err *e = stamp_directory(model_dir, &stamp);
    if (e)
        return e;
    struct strbuf text = STRBUF_INIT;
    strbuf_printf(&text, "%016" PRIx64, stamp);
    *ret = strbuf_take(&text);
    return NULL;
}

/* The value of FILES_PARAMETER; NULL if it is not set. */
static const char *chosen_files(const Inference__ModelConfig *proto)
{
    for (size_t i = 0; i < proto->n_parameters; i++)
        if (strcmp(proto->parameters[i]->key, FILES_PARAMETER) == 0 && proto->parameters[i]->value)
            return proto->parameters[i]->value->string_value;
    return NULL;
}

/* Makes the part of the key that belongs to the version. An ensemble's steps are other models,
 * and only this process knows when they change. So the answers of an ensemble are valid for this
 * process and this load only. */
static void make_key(struct cache_model *m, const struct serve_version *v, const char *files)
{
    size_t len;
    char *config = config_print_json(v->config->proto, &len);
    const char *chosen = chosen_files(v->config->proto);
    struct strbuf own = STRBUF_INIT;
    m->ensemble = v->scheduler->follows;
    m->follows = m->ensemble && !chosen;
    strbuf_puts(&own, chosen ? chosen : files);
    if (m->follows)
        strbuf_printf(&own, " %" PRIu64, clock_wall_ns());
    cache_key_model_init(&m->key, v->name, v->number, config, len, strbuf_str(&own));
    strbuf_fini(&own);
    mem_free(config);
}

static struct cache_model *cache_of(const struct serve_version *v)
{
    return (struct cache_model *)v->scheduler->wraps[SCHEDULER_CACHE];
}

/* Queues a request. The time of the lookup counts as queue time. */
static bool cache_push(struct scheduler *s, struct request *r, time_ns now)
{
    (void)now;
    return cache_of(s->version)->base.inner.push(s, r, r->times.queue_start);
}

static void cache_free(struct scheduler *s)
{
    struct cache_model *m = cache_of(s->version);
    void (*inner)(struct scheduler *) = m->base.inner.free;
    mem_free(m);
    inner(s);
}

static void cache_accept(struct scheduler *s, struct list *requests, bool on_loop);

static void wrap_in_cache(void *own, struct serve_version *v, const char *files)
{
    struct cache_stage *s = own;
    if (!v->config->response_cache)
        return;
    if (!s) {
        LOG_WARN("model '%s' asks for a response cache and the server has none: see --cache-config",
                 v->name);
        return;
    }
    struct cache_model *m = MEM_NEW(struct cache_model);
    m->stage = s;
    make_key(m, v, files);
    scheduler_put_around(v->scheduler, SCHEDULER_CACHE, &m->base);
    v->scheduler->ops.accept = cache_accept;
    v->scheduler->ops.push = cache_push;
    v->scheduler->ops.free = cache_free;
}

static void others_serve(void *own)
{
    struct cache_stage *s = own;
    if (s)
        atomic_store_explicit(&s->changed, clock_now_ns(), memory_order_release);
}

static struct cache_ticket *ticket_of(struct crew_job *job)
{
    return LIST_ITEM(job, struct cache_ticket, job);
}

/* -- inserting -- */

/* The cache has provided memory for the entry's one buffer: writes the answer there. */
static struct err *cache_stage_copy_in(struct cache_entry_copier *c, struct cache_entry *entry)
{
    struct transfer *t = LIST_ITEM(c, struct transfer, copier);
    void *base = NULL;
    struct buffer_attributes attributes;
    buffer_attributes_init(&attributes, 0, BUF_MEMORY_CPU, 0);
    struct err *e = cache_entry_get(entry, 0, &base, &attributes);
    if (e)
        return e;
    if (!base || cache_entry_count(entry) != 1 || attributes.memory == BUF_MEMORY_GPU ||
        attributes.byte_size != cache_pack_size(t->response))
        return err_new(STATUS_INVALID_ARG,
                       "expected the entry as it was given, with CPU memory of its size");
    cache_pack_write(t->response, base);
    t->done = true;
    return NULL;
}

static struct err *call_insert(const struct cache_ticket *t, struct cache_plugin *plugin,
                               struct response *r)
{
    struct transfer transfer = {.request = t->request, .response = r};
    struct cache_entry *entry = cache_entry_new();
    cache_entry_copier_init(&transfer.copier, cache_stage_copy_in);
    cache_entry_reserve(entry, cache_pack_size(r));
    struct err *e = cache_plugin_insert(plugin, t->key, entry, &transfer.copier);
    cache_entry_copier_end(&transfer.copier);
    cache_entry_free(entry);
    if (!e && !transfer.done)
        e = err_new(STATUS_INTERNAL, "TRITONCACHE_CacheInsert did not call TRITONCACHE_Copy");
    return e;
}

static void pass_on(const struct cache_ticket *t, struct response *r)
{
    if (t->next)
        t->next(r);
    else
        response_pass_on(r);
}

/* Inserts the answer into the cache, then passes it on. */
static void cache_stage_insert(struct cache_ticket *t)
{
    struct serve_version *v = version_of(t->request);
    struct cache_plugin *plugin = cache_of(v)->stage->plugin;
    struct response *r = t->response;
    time_ns start = clock_now_ns();
    struct err *e = call_insert(t, plugin, r);
    uint64_t insert_ns = clock_now_ns() - start;
    /* Another request inserted the same answer first. That is neither a hit nor a miss. */
    bool there = e && err_code(e) == STATUS_ALREADY_EXISTS;
    if (!there)
        stats_cache_miss(v->stats, t->lookup_ns + insert_ns);
    if (e && !there)
        LOG_ERROR("Failed to insert key [%s] into response cache '%s' for model '%s': %s", t->key,
                  plugin->name, v->name, err_message(e));
    err_free(e);
    pass_on(t, r);
}

static void run_insert(struct crew_job *job, void *own)
{
    (void)own;
    struct cache_ticket *t = ticket_of(job);
    struct serve_version *v = version_of(t->request);
    version_pin(v); /* delivery releases the request's pin, so v needs one more */
    cache_stage_insert(t);
    version_unpin(v);
}

/* A backend sent a response. It is stored if it is the only response of a successful request. */
static void cache_stage_hold(struct response *r)
{
    struct cache_ticket *t = r->request->slots[REQUEST_SLOT_CACHE];
    struct cache_model *m = cache_of(version_of(r->request));
    bool only = (r->flags & RESPONSE_FINAL) && !t->answered;
    uint64_t size = only && !r->error && !r->empty ? cache_pack_size(r) : 0;
    t->answered = true;
    if (!size || r->request->memory_shared) {
        pass_on(t, r);
        return;
    }
    bool large = size > INLINE_BYTES;
    if (large)
        atomic_store_explicit(&m->large, true, memory_order_relaxed);
    t->response = r;
    t->job.run = run_insert;
    if (m->stage->plugin->inline_ok && !large)
        cache_stage_insert(t);
    else if (!crew_add(m->stage->crew, &t->job))
        pass_on(t, r);
}

/* -- looking up -- */

/* The cache shows the stored answer, which is valid only during this call: makes the response
 * from it. */
static struct err *copy_out(struct cache_entry_copier *c, struct cache_entry *entry)
{
    struct transfer *t = LIST_ITEM(c, struct transfer, copier);
    void *base = NULL;
    struct buffer_attributes attributes;
    buffer_attributes_init(&attributes, 0, BUF_MEMORY_CPU, 0);
    struct err *e = cache_entry_get(entry, 0, &base, &attributes);
    if (e)
        return e;
    if (t->response || cache_entry_count(entry) != 1 || attributes.memory == BUF_MEMORY_GPU)
        return err_new(STATUS_INVALID_ARG, "expected one buffer of CPU memory, once");
    struct response *r = response_new(t->request);
    e = cache_pack_read(base, attributes.byte_size, r);
    if (e)
        response_free(r);
    else
        t->response = r;
    return e;
}

/* Looks the request up. Returns the stored answer; NULL if there is none. */
static struct response *call_lookup(const struct cache_ticket *t, struct cache_plugin *plugin)
{
    struct transfer transfer = {.request = t->request};
    struct cache_entry *entry = cache_entry_new();
    cache_entry_copier_init(&transfer.copier, copy_out);
    struct err *e = cache_plugin_lookup(plugin, t->key, entry, &transfer.copier);
    cache_entry_copier_end(&transfer.copier);
    cache_entry_free(entry);
    if (e && transfer.response) {
        response_free(transfer.response);
        transfer.response = NULL;
    }
    if (e && err_code(e) != STATUS_NOT_FOUND)
        LOG_ERROR("Failed to look up key [%s] in response cache '%s' for model '%s': %s", t->key,
                  plugin->name, version_of(t->request)->name, err_message(e));
    else if (!e && !transfer.response)
        LOG_ERROR("response cache '%s': TRITONCACHE_CacheLookup succeeded without a call of "
                  "TRITONCACHE_Copy",
                  plugin->name);
    err_free(e);
    return transfer.response;
}

/* Answers a request from the cache. Returns false if the request must be computed. */
static bool lookup(struct cache_ticket *t)
{
    struct request *r = t->request;
    struct serve_version *v = version_of(r);
    const struct cache_model *m = cache_of(v);
    struct cache_key_model key = m->key;
    if (m->follows)
        cache_key_model_at(&m->key, t->changed, &key);
    if ((m->ensemble && request_names_sequence(r)) || !cache_key_make(&key, r, t->key))
        return false;
    t->lookup_start = clock_now_ns();
    struct response *answer = call_lookup(t, m->stage->plugin);
    time_ns end = clock_now_ns();
    t->lookup_ns = end - t->lookup_start;
    if (!answer) {
        t->next = r->hold;
        r->hold = cache_stage_hold;
        return false;
    }
    stats_cache_hit(v->stats, r->times.start, r->times.queue_start, t->lookup_start, t->lookup_ns,
                    end);
    response_send(answer, RESPONSE_FINAL, NULL);
    request_release(r);
    return true;
}

/* Passes requests that missed the cache on to the scheduler. */
static void cache_stage_go_on(struct serve_version *v, struct list *requests, bool on_loop)
{
    const struct scheduler_ops *inner = &cache_of(v)->base.inner;
    if (inner->accept && !list_empty(requests))
        inner->accept(v->scheduler, requests, on_loop);
}

static void run_lookup(struct crew_job *job, void *own)
{
    (void)own;
    struct request *r = ticket_of(job)->request;
    struct serve_version *v = version_of(r);
    version_pin(v); /* the answer releases the request's pin, so v needs one more */
    if (!lookup(ticket_of(job))) {
        struct list one;
        list_init(&one);
        list_append(&one, &r->queue_node);
        cache_stage_go_on(v, &one, false);
        if (!list_empty(&one))
            submit_accepted(v, &one);
    }
    version_unpin(v);
}

/* Gives requests their place in the order when they arrive, not when the lookup ends. */
static void arrive(struct scheduler *s, const struct list *requests)
{
    mutex_lock(&s->version->lock);
    LIST_EACH (node, requests)
        s->ops.arrive(s, LIST_ITEM(node, struct request, queue_node));
    mutex_unlock(&s->version->lock);
}

static void cache_accept(struct scheduler *s, struct list *requests, bool on_loop)
{
    struct cache_model *m = cache_of(s->version);
    bool here = on_loop && m->stage->plugin->inline_ok &&
                !atomic_load_explicit(&m->large, memory_order_relaxed);
    time_ns now = clock_now_ns();
    time_ns changed = atomic_load_explicit(&m->stage->changed, memory_order_acquire);
    struct response_batch answers;
    struct list stay;
    struct list *node;
    list_init(&stay);
    if (s->ops.arrive)
        arrive(s, requests);
    response_batch_begin(&answers);
    while ((node = list_pop(requests))) {
        struct request *r = LIST_ITEM(node, struct request, queue_node);
        struct cache_ticket *t = arena_zalloc(&r->arena, sizeof(*t));
        t->request = r;
        t->changed = changed;
        t->job.run = run_lookup;
        r->slots[REQUEST_SLOT_CACHE] = t;
        r->times.queue_start = now;
        bool taken = here ? lookup(t) : crew_add(m->stage->crew, &t->job);
        if (!taken)
            list_append(&stay, node);
    }
    response_batch_end(&answers);
    list_splice(requests, &stay);
    cache_stage_go_on(s->version, requests, on_loop);
}

const struct feature cache_stage_feature = {
    .open = open_cache,
    .close = close_cache,
    .look = look_at_files,
    .wrap = wrap_in_cache,
    .changed = others_serve,
};
