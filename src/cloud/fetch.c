#include "cloud/fetch.h"

#include "base/log.h"
#include "base/mem.h"
#include "cloud/copy.h"
#include "cloud/verify.h"
#include "os/files/disk.h"
#include "os/files/file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PIECE_BYTES ((uint64_t)8 << 20)
#define SAY_EVERY   TIME_S(5)
#define MAX_TRIES   6u

/* Attempts for information that is useful but not needed. */
#define MAX_ASKS 3u

/* The most bytes of an object: each of its pieces needs memory here. */
#define MAX_OBJECT_BYTES ((uint64_t)1 << 44)

/* How often to check whether another process has finished an object. */
#define OTHER_WAIT TIME_MS(20)

struct file;

/* The bytes of a file up to `to`; `at` is the current position. */
struct piece {
    struct crew_job job;
    struct file *file;
    size_t index;
    uint64_t to;
    uint64_t at;
    bool proven;       /* this attempt's answer is the requested one */
    struct err *error; /* why no further attempt helps */
};

/* The download of one part of one model. */
struct fetch {
    struct cloud_copy *k;
    atomic_bool given_up;     /* something failed, so new work does not start; orders nothing */
    atomic_uint_fast64_t got; /* bytes, for the log */
    struct mutex lock;        /* rank LEAF; guards the fields below */
    struct mutex_cond changed;
    size_t left; /* files not finished */
    struct err *error;
};

struct file {
    struct crew_job job;
    struct fetch *f;
    const struct listing_object *o;
    char *to;
    char id[STASH_ID_CHARS + 1];
    struct stash_part *part;
    struct piece *pieces;
    size_t piece_count;
    /* the thread that takes the last one has seen what the others wrote */
    atomic_size_t pieces_left;
    unsigned tries;
    struct err *error; /* of a piece; guarded by the lock of f */
    /* the store says that its digest is not of these bytes; orders nothing */
    atomic_bool no_digest;
    uint64_t part_bytes; /* of the upload, from the store; 0 = not asked, or unknown */
    unsigned char last[STASH_HASH_BYTES]; /* hash of the try before */
};

/* Ends a file: closes its part, and gives the error to the waiting thread. */
static void file_end(struct file *x, struct err *e)
{
    struct fetch *f = x->f;
    stash_leave(x->part);
    x->part = NULL;
    mem_free(x->pieces);
    x->pieces = NULL;
    if (e)
        atomic_store(&f->given_up, true);
    mutex_lock(&f->lock);
    if (e && !f->error) {
        f->error = e;
        e = NULL;
    }
    f->left--;
    mutex_cond_signal(&f->changed);
    mutex_unlock(&f->lock);
    err_free(e);
}

static struct err *fetch_build(void *owner, void *session, struct call_request *r)
{
    struct piece *p = owner;
    const struct cloud *c = p->file->f->k->c;
    struct err *e = p->error;
    p->error = NULL;
    p->proven = false;
    if (!e && atomic_load(&p->file->f->given_up))
        e = err_new(STATUS_UNAVAILABLE, "given up, since another object could not be read");
    return e ? e : c->kind->get(c->site, session, p->file->o, p->at, p->to, r);
}

static bool fetch_renew(void *owner, const struct call_answer *a)
{
    const struct piece *p = owner;
    const struct cloud *c = p->file->f->k->c;
    return c->kind->renew(c->site, a);
}

/* True if the answer's bytes are the requested ones. */
static bool fetch_is_wanted(const struct piece *p, const struct call_answer *a)
{
    char range[128];
    if (a->status == 200)
        return p->at == 0 && p->to == p->file->o->size;
    if (a->status != 206 || !call_value(a, "content-range", range, sizeof(range)))
        return false;
    unsigned long long from;
    unsigned long long to;
    unsigned long long all;
    return sscanf(range, "bytes %llu-%llu/%llu", &from, &to, &all) == 3 && from == p->at &&
           to + 1 <= p->to && all == p->file->o->size;
}

static bool sink(void *owner, const struct call_answer *a, const void *data, size_t len)
{
    struct piece *p = owner;
    struct file *x = p->file;
    if (!p->proven && !fetch_is_wanted(p, a))
        return false;
    p->proven = true;
    if (!x->f->k->c->kind->digest_holds(a))
        atomic_store(&x->no_digest, true);
    if (len > p->to - p->at || atomic_load(&x->f->given_up))
        return false;
    p->error = disk_write_at(x->part->fd, data, len, p->at);
    if (p->error)
        return false;
    p->at += len;
    atomic_fetch_add_explicit(&x->f->got, len, memory_order_relaxed);
    return true;
}

static enum call_verdict fetch_check(void *owner, const struct call_answer *a, struct err **ret_why)
{
    (void)a;
    const struct piece *p = owner;
    if (p->at == p->to)
        return CALL_FINE;
    *ret_why = err_new(STATUS_UNAVAILABLE, "the answer has too few bytes");
    return CALL_AGAIN;
}

static void file_done(struct file *x, void *session);

static void piece_main(struct crew_job *job, void *session)
{
    struct piece *p = LIST_ITEM(job, struct piece, job);
    struct file *x = p->file;
    struct strbuf what = STRBUF_INIT;
    strbuf_printf(&what, "reading '%s' of model repository '%s'", x->o->name, x->f->k->c->path);
    struct call call = {.what = strbuf_str(&what),
                        .build = fetch_build,
                        .sink = sink,
                        .check = fetch_check,
                        .renew = fetch_renew,
                        .owner = p};
    struct err *e = call_run(&x->f->k->c->net, session, &call);
    int status = call.answer.status;
    if (!e)
        e = stash_piece_done(x->part, p->index);
    call_fini(&call);
    strbuf_fini(&what);
    err_free(p->error);
    p->error = NULL;
    if (e) {
        mutex_lock(&x->f->lock);
        if (status == 404 || status == 412 || status == 416)
            x->f->k->changed = true;
        struct err *other = x->error ? e : NULL;
        if (!x->error)
            x->error = e;
        mutex_unlock(&x->f->lock);
        err_free(other);
    }
    if (atomic_fetch_sub(&x->pieces_left, 1) == 1)
        file_done(x, session);
}

/* Requests every missing piece. */
static void ask_for_pieces(struct file *x, void *session)
{
    struct crew *crew = x->f->k->c->data;
    size_t missing = 0;
    for (size_t i = 0; i < x->piece_count; i++) {
        struct piece *p = &x->pieces[i];
        uint64_t from = i * PIECE_BYTES;
        uint64_t to = from + PIECE_BYTES < x->o->size ? from + PIECE_BYTES : x->o->size;
        bool there = stash_has_piece(x->part, i);
        *p = (struct piece){
            .job = {.run = piece_main}, .file = x, .index = i, .to = to, .at = there ? to : from};
        missing += !there;
    }
    /* Plus one for this function, so that x lives until the loop has ended. */
    atomic_store(&x->pieces_left, missing + 1);
    size_t count = x->piece_count;
    for (size_t i = 0; i < count; i++)
        if (x->pieces[i].at < x->pieces[i].to)
            crew_do(crew, &x->pieces[i].job);
    if (atomic_fetch_sub(&x->pieces_left, 1) == 1)
        file_done(x, session);
}

/* Downloads all of it again, unless that was done often enough. */
static struct err *fetch_again(struct file *x)
{
    if (++x->tries >= MAX_TRIES)
        return err_new(STATUS_UNAVAILABLE,
                       "reading '%s' of model repository '%s': its content is not what the store "
                       "says it is (%u attempts)",
                       x->o->name, x->f->k->c->path, x->tries);
    LOG_WARN("'%s' of model repository '%s' arrived damaged: it is fetched again", x->o->name,
             x->f->k->c->path);
    return stash_restart(x->part);
}

/* Turns the download into content, and links the file to it. */
static struct err *fetch_keep(struct file *x, const unsigned char sha[STASH_HASH_BYTES])
{
    struct stash *stash = x->f->k->c->stash;
    bool linked = false;
    struct err *e = stash_commit(stash, x->part, sha);
    x->part = NULL;
    if (!e)
        e = stash_link(stash, x->id, x->o->size, x->to, &linked);
    if (!e && !linked)
        e = err_new(STATUS_UNAVAILABLE,
                    "'%s' left the cache at once: NEREID_CLOUD_CACHE_MAX_BYTES is too small",
                    x->o->name);
    return e;
}

static struct err *build_first_part(void *owner, void *session, struct call_request *r)
{
    const struct file *x = owner;
    const struct cloud *c = x->f->k->c;
    return c->kind->first_part(c->site, session, x->o, r);
}

static bool renew_first_part(void *owner, const struct call_answer *a)
{
    const struct file *x = owner;
    return x->f->k->c->kind->renew(x->f->k->c->site, a);
}

/* The part size of an upload, from the store; 0 = unknown. */
static uint64_t ask_for_part_bytes(struct file *x, void *session)
{
    char value[32];
    struct cloud *c = x->f->k->c;
    struct call call = {.what = "asking for the size of an object's parts",
                        .build = build_first_part,
                        .renew = renew_first_part,
                        .most = MAX_ASKS,
                        .owner = x};
    struct err *e = call_run(&c->net, session, &call);
    uint64_t bytes = 0;
    if (!e && call_value(&call.answer, "content-length", value, sizeof(value)))
        bytes = strtoull(value, NULL, 10);
    call_fini(&call);
    err_free(e); /* not every store knows parts */
    return bytes;
}

/* Checks the download against the store's digest, also if that depends on an unusual part size. */
static struct err *verify(struct file *x, void *session, unsigned char ret_sha[STASH_HASH_BYTES],
                          enum verify_result *ret)
{
    const struct cloud *c = x->f->k->c;
    const char *digest = atomic_load(&x->no_digest) ? "" : x->o->digest;
    struct err *e = verify_part(c->net.abi, x->part, digest, ret_sha, ret);
    if (e || *ret != VERIFY_DOUBTED || !c->kind->first_part)
        return e;
    bool same;
    if (x->tries == 0)
        x->part_bytes = ask_for_part_bytes(x, session);
    e = verify_in_parts(c->net.abi, x->part, digest, x->part_bytes, &same);
    if (!e && same)
        *ret = VERIFY_SAME;
    return e;
}

/* All pieces have arrived, or one has failed. */
static void file_done(struct file *x, void *session)
{
    unsigned char sha[STASH_HASH_BYTES] = {0};
    enum verify_result found = VERIFY_UNSURE;
    struct err *e = x->error;
    x->error = NULL;
    if (!e)
        e = verify(x, session, sha, &found);
    /* If two tries have the same bytes, the parts have different sizes, or the store does not
     * tell the size. */
    bool twice = found == VERIFY_DOUBTED && x->tries && memcmp(sha, x->last, sizeof(sha)) == 0;
    memcpy(x->last, sha, sizeof(sha));
    if (!e && (found == VERIFY_OTHER || (found == VERIFY_DOUBTED && !twice))) {
        e = fetch_again(x);
        if (!e) {
            ask_for_pieces(x, session);
            return;
        }
    } else if (!e) {
        e = fetch_keep(x, sha);
    }
    file_end(x, e);
}

/* Links the file, or opens its download. If neither happens, another process is downloading it. */
static struct err *fetch_begin(struct file *x, bool *ret_linked)
{
    struct stash *stash = x->f->k->c->stash;
    struct err *e = stash_link(stash, x->id, x->o->size, x->to, ret_linked);
    if (e || *ret_linked)
        return e;
    x->piece_count = (size_t)((x->o->size + PIECE_BYTES - 1) / PIECE_BYTES);
    e = stash_begin(stash, x->id, x->o->size, x->piece_count, &x->part);
    if (x->part) /* another process may have finished it meanwhile */
        e = stash_link(stash, x->id, x->o->size, x->to, ret_linked);
    if (x->part && *ret_linked) {
        stash_drop(x->part);
        x->part = NULL;
    }
    return e;
}

/* Puts the job at the end of the queue instead of blocking a thread: the other process may wait
 * for pieces that are queued after this one. */
static void wait_for_other(struct file *x)
{
    struct cloud *c = x->f->k->c;
    if (call_net_wait(&c->net, clock_now_ns() + OTHER_WAIT))
        crew_do(c->data, &x->job);
    else
        file_end(x, err_new(STATUS_UNAVAILABLE, "the server stops"));
}

static void file_main(struct crew_job *job, void *session)
{
    struct file *x = LIST_ITEM(job, struct file, job);
    bool linked = false;
    if (atomic_load(&x->f->given_up)) {
        file_end(x, NULL);
        return;
    }
    if (x->o->size == 0) {
        file_end(x, disk_write(x->to, "", 0));
        return;
    }
    struct err *e = fetch_begin(x, &linked);
    if (e || linked) {
        if (linked)
            atomic_fetch_add_explicit(&x->f->got, x->o->size, memory_order_relaxed);
        file_end(x, e);
    } else if (!x->part) {
        wait_for_other(x);
    } else {
        x->pieces = mem_zalloc(x->piece_count * sizeof(*x->pieces));
        ask_for_pieces(x, session);
    }
}

static void wait_for_all(struct fetch *f, uint64_t total)
{
    const struct cloud_copy *k = f->k;
    time_ns next = clock_now_ns() + SAY_EVERY;
    mutex_lock(&f->lock);
    while (f->left) {
        mutex_cond_wait_until(&f->changed, &f->lock, next);
        if (!f->left || clock_now_ns() < next)
            continue;
        next += SAY_EVERY;
        mutex_unlock(&f->lock);
        LOG_INFO("fetching model '%s' of '%s': %.1f of %.1f MiB", k->model, k->c->path,
                 (double)atomic_load(&f->got) / 1048576.0, (double)total / 1048576.0);
        mutex_lock(&f->lock);
    }
    mutex_unlock(&f->lock);
}

static void file_init(struct file *x, struct fetch *f, const struct listing_object *o,
                      const char *path)
{
    const struct cloud *c = f->k->c;
    struct strbuf text = STRBUF_INIT;
    c->kind->identify(c->site, o, &text);
    stash_id(c->stash, strbuf_str(&text), x->id);
    strbuf_fini(&text);
    x->job.run = file_main;
    x->f = f;
    x->o = o;
    x->to = file_join(f->k->dir, path);
}

/* True if it is a file of this part. path: after "MODEL/". */
static bool is_file_of(const char *path, int64_t part)
{
    return *path && path[strlen(path) - 1] != '/' && listing_in(path, part);
}

/* Checks the sizes that the store gave: what does not fit in the cache together with the copy is
 * not requested. */
static struct err *check_sizes(const struct cloud_copy *k, int64_t part, uint64_t *ret_total)
{
    uint64_t most = stash_max_bytes(k->c->stash);
    uint64_t total = 0;
    size_t skip = strlen(k->model) + 1;
    for (size_t i = k->first; i < k->first + k->count; i++) {
        const struct listing_object *o = &k->view->listing.objects[i];
        uint64_t all;
        if (!is_file_of(o->name + skip, part))
            continue;
        if (o->size > MAX_OBJECT_BYTES)
            return err_new(STATUS_INVALID_ARG,
                           "'%s' of model repository '%s' has %" PRIu64
                           " bytes as the store says, expected at most %" PRIu64,
                           o->name, k->c->path, o->size, MAX_OBJECT_BYTES);
        if (__builtin_add_overflow(total, o->size, &total) ||
            __builtin_add_overflow(k->bytes, total, &all) || all > most)
            return err_new(STATUS_INVALID_ARG,
                           "model '%s' of model repository '%s' is larger than the cache may be: "
                           "%" PRIu64 " bytes with '%s', which has %" PRIu64 ", expected at most "
                           "%" PRIu64 " (NEREID_CLOUD_CACHE_MAX_BYTES)",
                           k->model, k->c->path, k->bytes + total, o->name, o->size, most);
    }
    *ret_total = total;
    return NULL;
}

struct err *fetch_part(struct cloud_copy *k, int64_t part)
{
    struct fetch f = {.k = k};
    size_t count = 0;
    uint64_t total = 0;
    size_t skip = strlen(k->model) + 1;
    struct err *e = check_sizes(k, part, &total);
    if (e)
        return e;
    struct file *files = mem_zalloc((k->count + 1) * sizeof(*files));
    mutex_init(&f.lock, MUTEX_RANK_LEAF);
    mutex_cond_init(&f.changed);
    for (size_t i = k->first; i < k->first + k->count; i++) {
        const struct listing_object *o = &k->view->listing.objects[i];
        if (is_file_of(o->name + skip, part))
            file_init(&files[count++], &f, o, o->name + skip);
    }
    f.left = count;
    for (size_t i = 0; i < count; i++)
        crew_do(k->c->data, &files[i].job);
    wait_for_all(&f, total);
    for (size_t i = 0; i < count; i++)
        mem_free(files[i].to);
    mem_free(files);
    mutex_cond_fini(&f.changed);
    mutex_fini(&f.lock);
    if (!f.error)
        k->bytes += total;
    return f.error;
}
