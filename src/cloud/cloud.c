#include "cloud/cloud.h"

#include "base/log.h"
#include "base/mem.h"
#include "cloud/cloud_priv.h"
#include "os/files/file.h"
#include "cloud/web/cloud_abi.h"
#include "cloud/web/module.h"

#include <stdlib.h>
#include <string.h>

#define MAX_PAGE_BYTES   ((size_t)32 << 20)
#define MAX_PAGES        2000u
#define TIMEOUT_SECS     30u
#define MAX_TIMEOUT_SECS 3600u
#define LAST_ROOT        "/var/tmp/nereid-cache" /* used if no other place is writable */

/* Each thread has its own connections. */
static void *connect(void *cloud)
{
    return ((struct cloud *)cloud)->net.abi->session_new();
}

static void disconnect(void *cloud, void *session)
{
    ((struct cloud *)cloud)->net.abi->session_free(session);
}

static const struct crew_kind listers = {
    .name = "store", .most = 2, .idle = TIME_S(20), .begin = connect, .end = disconnect};
static const struct crew_kind readers = {
    .name = "store", .most = 8, .idle = TIME_S(20), .begin = connect, .end = disconnect};

static const struct kind *const kinds[] = {&s3_kind, &gcs_kind, &azure_kind};

static const struct kind *cloud_kind(const char *path)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (strncmp(path, kinds[i]->scheme, strlen(kinds[i]->scheme)) == 0)
            return kinds[i];
    return NULL;
}

bool cloud_is(const char *path)
{
    return cloud_kind(path) != NULL;
}

/* A number from the environment in [1, max], or the default. */
static uint64_t env_number(const char *name, uint64_t max, uint64_t usual)
{
    const char *text = getenv(name);
    if (!text || !*text || strspn(text, "0123456789") != strlen(text))
        return usual;
    uint64_t n = strtoull(text, NULL, 10);
    return n >= 1 && n <= max ? n : usual;
}

/* The default place of the cache; the caller frees it. */
static char *usual_root(void)
{
    const char *cache = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    struct strbuf path = STRBUF_INIT;
    if (cache && *cache == '/')
        strbuf_printf(&path, "%s/nereid/cloud", cache);
    else if (home && *home == '/')
        strbuf_printf(&path, "%s/.cache/nereid/cloud", home);
    else
        strbuf_puts(&path, LAST_ROOT);
    return strbuf_take(&path);
}

static const struct cloud_abi *abi_of_hash;

static void *hash_begin(void)
{
    return abi_of_hash->digest_new(CLOUD_ABI_SHA256);
}

static struct err *open_stash(struct cloud *c)
{
    abi_of_hash = c->net.abi; /* the same table each time */
    const struct stash_hash hash = {
        .begin = hash_begin, .add = c->net.abi->digest_add, .end = c->net.abi->digest_end};
    uint64_t max =
        env_number("NEREID_CLOUD_CACHE_MAX_BYTES", UINT64_MAX / 2, STASH_DEFAULT_MAX_BYTES);
    const char *mount = getenv(c->kind->mount_env);
    bool said = mount && *mount;
    char *root = said ? file_join(mount, "nereid-cache") : usual_root();
    struct err *e = stash_open(root, max, &hash, &c->stash);
    mem_free(root);
    if (!e || said)
        return e;
    LOG_WARN("%s; it lies in " LAST_ROOT " instead", err_message(e));
    err_free(e);
    return stash_open(LAST_ROOT, max, &hash, &c->stash);
}

struct err *cloud_open(const char *path, struct cloud **ret)
{
    const struct cloud_abi *abi;
    struct err *e = module_get(&abi);
    if (e)
        return e;
    struct cloud *c = MEM_NEW(struct cloud);
    c->path = mem_strdup(path);
    c->kind = cloud_kind(path);
    mutex_init(&c->lock, MUTEX_RANK_LEAF);
    mutex_cond_init(&c->changed);
    const char *authorities = getenv("AWS_CA_BUNDLE");
    if (!authorities || !*authorities)
        authorities = getenv("SSL_CERT_FILE");
    call_net_init(&c->net, abi,
                  TIME_S(env_number("NEREID_CLOUD_TIMEOUT_SECS", MAX_TIMEOUT_SECS, TIMEOUT_SECS)),
                  authorities && *authorities ? authorities : NULL);
    e = c->kind->open(path, &c->net, &c->site);
    if (!e)
        e = open_stash(c);
    if (e) {
        cloud_free(c);
        return e;
    }
    c->control = crew_new(&listers, c);
    c->data = crew_new(&readers, c);
    *ret = c;
    return NULL;
}

void cloud_cancel(struct cloud *c)
{
    if (c)
        call_net_cancel(&c->net);
}

void cloud_free(struct cloud *c)
{
    if (!c)
        return;
    crew_free(c->control);
    crew_free(c->data);
    cloud_view_unref(c->view);
    err_free(c->trouble);
    stash_close(c->stash);
    if (c->site)
        c->kind->close(c->site);
    call_net_fini(&c->net);
    mutex_cond_fini(&c->changed);
    mutex_fini(&c->lock);
    mem_free(c->path);
    mem_free(c);
}

const char *cloud_path(const struct cloud *c)
{
    return c->path;
}

struct cloud_view *cloud_view_ref(struct cloud_view *v)
{
    if (v)
        atomic_fetch_add_explicit(&v->refs, 1, memory_order_relaxed);
    return v;
}

void cloud_view_unref(struct cloud_view *v)
{
    if (!v || atomic_fetch_sub_explicit(&v->refs, 1, memory_order_acq_rel) != 1)
        return;
    listing_fini(&v->listing);
    mem_free(v);
}

/* A page of a listing that is being read. */
struct page {
    struct cloud *c;
    const char *model;
    char *token; /* NULL = the first page */
    char *next;
    struct listing *listing;
    size_t mark; /* number of objects of the pages before */
};

static struct err *build_page(void *owner, void *session, struct call_request *r)
{
    const struct page *p = owner;
    return p->c->kind->list(p->c->site, session, p->model, p->token, r);
}

static bool renew_page(void *owner, const struct call_answer *a)
{
    const struct page *p = owner;
    return p->c->kind->renew(p->c->site, a);
}

/* A page that is not a listing was damaged on its way: it is requested again. */
static enum call_verdict check_page(void *owner, const struct call_answer *a, struct err **ret_why)
{
    struct page *p = owner;
    p->listing->count = p->mark;
    mem_free(p->next);
    p->next = NULL;
    *ret_why =
        p->c->kind->read(p->c->site, strbuf_str(&a->body), a->body.len, p->listing, &p->next);
    if (!*ret_why)
        return CALL_FINE;
    return p->listing->full ? CALL_GIVE_UP : CALL_AGAIN;
}

struct err *cloud_list(struct cloud *c, void *session, const char *model, struct cloud_view **ret)
{
    struct cloud_view *v = MEM_NEW(struct cloud_view);
    struct strbuf what = STRBUF_INIT;
    struct err *e = NULL;
    atomic_init(&v->refs, 1);
    listing_init(&v->listing);
    struct page p = {.c = c, .model = model, .listing = &v->listing};
    strbuf_printf(&what, "listing %s%s%s'%s'", model ? "model '" : "", model ? model : "",
                  model ? "' of " : "model repository ", c->path);
    for (unsigned pages = 0; !e; pages++) {
        struct call call = {.what = strbuf_str(&what),
                            .build = build_page,
                            .max_body = MAX_PAGE_BYTES,
                            .check = check_page,
                            .renew = renew_page,
                            .owner = &p};
        p.mark = v->listing.count;
        e = call_run(&c->net, session, &call);
        call_fini(&call);
        if (e || !p.next)
            break;
        if (pages == MAX_PAGES || (p.token && strcmp(p.token, p.next) == 0))
            e = err_new(STATUS_INVALID_ARG, "%s: it does not end after %u pages", strbuf_str(&what),
                        pages + 1);
        mem_free(p.token);
        p.token = p.next;
        p.next = NULL;
    }
    mem_free(p.token);
    mem_free(p.next);
    strbuf_fini(&what);
    listing_sort(&v->listing);
    if (e)
        cloud_view_unref(v);
    else
        *ret = v;
    return e;
}

/* Notes the result of a look, even if nobody waits for it. */
static void cloud_say(struct cloud *c, const struct err *e)
{
    mutex_lock(&c->lock);
    bool was_bad = c->trouble != NULL;
    mutex_unlock(&c->lock);
    if (e && !atomic_load(&c->net.cancelled))
        LOG_ERROR("%s", err_message(e));
    else if (!e && was_bad)
        LOG_INFO("model repository '%s' answers again", c->path);
}

static void look_main(struct crew_job *job, void *session)
{
    struct cloud *c = LIST_ITEM(job, struct cloud, job);
    struct cloud_view *fresh = NULL;
    struct err *e = cloud_list(c, session, NULL, &fresh);
    cloud_say(c, e);
    mutex_lock(&c->lock);
    struct cloud_view *old = fresh ? c->view : NULL;
    struct err *old_trouble = c->trouble;
    if (fresh)
        c->view = fresh;
    c->trouble = e;
    c->done = c->serves;
    c->looking = c->asked > c->done;
    c->serves = c->asked;
    bool again = c->looking;
    mutex_cond_broadcast(&c->changed);
    mutex_unlock(&c->lock);
    cloud_view_unref(old);
    err_free(old_trouble);
    if (again)
        crew_do(c->control, &c->job);
}

uint64_t cloud_look(struct cloud *c)
{
    mutex_lock(&c->lock);
    uint64_t look = ++c->asked;
    bool begin = !c->looking;
    if (begin) {
        c->looking = true;
        c->serves = look;
        c->job.run = look_main;
    }
    mutex_unlock(&c->lock);
    if (begin)
        crew_do(c->control, &c->job);
    return look;
}

struct err *cloud_wait(struct cloud *c, uint64_t look, time_ns until)
{
    struct err *e;
    mutex_lock(&c->lock);
    while (c->done < look && clock_now_ns() < until)
        mutex_cond_wait_until(&c->changed, &c->lock, until);
    if (c->done >= look)
        e = err_copy(c->trouble);
    else
        e = err_new(STATUS_UNAVAILABLE, "model repository '%s' has not answered yet", c->path);
    mutex_unlock(&c->lock);
    return e;
}

static struct cloud_view *current(struct cloud *c)
{
    mutex_lock(&c->lock);
    struct cloud_view *v = cloud_view_ref(c->view);
    mutex_unlock(&c->lock);
    return v;
}

size_t cloud_names(struct cloud *c, char ***ret)
{
    struct cloud_view *v = current(c);
    char **names = NULL;
    size_t count = 0;
    size_t at = 0;
    size_t len;
    const char *name;
    while (v && listing_next_model(&v->listing, &at, &name, &len)) {
        if ((count & (count - 1)) == 0)
            names = mem_realloc(names, (count ? count * 2 : 1) * sizeof(char *));
        names[count++] = mem_strndup(name, len);
    }
    cloud_view_unref(v);
    *ret = names;
    return count;
}

uint64_t cloud_stamp(struct cloud *c, const char *model)
{
    struct cloud_view *v = current(c);
    size_t first = 0;
    size_t count = 0;
    if (v)
        listing_model(&v->listing, model, &first, &count);
    uint64_t stamp = count ? listing_stamp(&v->listing, first, count, LISTING_ALL) : 0;
    cloud_view_unref(v);
    return stamp;
}

bool cloud_knows(struct cloud *c, const char *model)
{
    return cloud_stamp(c, model) != 0;
}
