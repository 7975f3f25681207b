#include "tracing/tracing_file.h"

#include "base/err.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "os/crew.h"
#include "os/files/disk.h"
#include "os/mutex.h"
#include "tracing/tracing_json.h"
#include "tracing/tracing_record.h"

#include <inttypes.h>

#define FILE_IDLE TIME_S(10)

/* So much text is put together before it is written. */
#define FILE_TEXT_BYTES ((size_t)1 << 20)

/* A file that is open, or not yet. */
struct trace_out {
    char *path; /* owned */
    int fd;     /* -1 = none */
    uint64_t size;
};

/* What one push brought. */
struct file_chunk {
    struct list node;
    struct list records;
    bool numbered;
};

struct tracing_file {
    struct crew *crew;
    struct crew_job job;
    struct mutex lock; /* rank LEAF; guards what follows */
    struct list chunks;
    bool writing; /* the job is under way, or about to be */

    /* The job's. */
    struct trace_out plain;
    uint64_t numbered; /* files with a number so far */
    bool failing;      /* the last write failed, and it was said */
    uint64_t lost;     /* traces since then */
};

static void file_forget(struct list *records)
{
    struct list *node;
    while ((node = list_pop(records)))
        tracing_record_free(LIST_ITEM(node, struct tracing_record, node));
}

static struct err *out_open(struct trace_out *o)
{
    struct err *e = disk_open_part(o->path, &o->fd);
    if (!e && o->fd < 0)
        return err_new(STATUS_UNAVAILABLE, "'%s' is in use by another process", o->path);
    if (!e)
        e = disk_hide(o->fd);
    if (!e)
        e = disk_set_size(o->fd, 0);
    if (e) {
        disk_close(o->fd);
        o->fd = -1;
    }
    o->size = 0;
    return e;
}

static void out_close(struct trace_out *o)
{
    disk_close(o->fd);
    o->fd = -1;
}

/* Behind what there is, in place of the bracket at its end. Of what did not fit nothing stays. */
static struct err *out_append(struct trace_out *o, struct strbuf *objects)
{
    struct err *e = o->fd < 0 ? out_open(o) : NULL;
    if (e)
        return e;
    strbuf_putc(objects, ']');
    uint64_t at = o->size ? o->size - 1 : 0;
    e = disk_write_at(o->fd, o->size ? "," : "[", 1, at);
    if (!e)
        e = disk_write_at(o->fd, objects->data, objects->len, at + 1);
    if (!e) {
        o->size = at + 1 + objects->len;
        return NULL;
    }
    err_free(disk_set_size(o->fd, o->size));
    if (o->size)
        err_free(disk_write_at(o->fd, "]", 1, at)); /* its place is there */
    return err_wrap(e, "'%s'", o->path);
}

static void file_judge(struct tracing_file *f, struct err *e, uint64_t traces)
{
    if (e) {
        f->lost += traces;
        if (!f->failing)
            LOG_ERROR("traces cannot be written and are thrown away: %s", err_message(e));
    } else if (f->failing) {
        LOG_INFO("traces are written again: %" PRIu64 " were thrown away", f->lost);
        f->lost = 0;
    }
    f->failing = e != NULL;
    err_free(e);
}

/* Objects of several records are written at once, up to so much text. */
static void write_records(struct tracing_file *f, struct trace_out *o, struct list *records)
{
    while (!list_empty(records)) {
        struct strbuf text = STRBUF_INIT;
        uint64_t traces = 0;
        struct list *node;
        while (text.len < FILE_TEXT_BYTES && (node = list_pop(records))) {
            struct tracing_record *r = LIST_ITEM(node, struct tracing_record, node);
            tracing_json_put(r, &text);
            tracing_record_free(r);
            traces++;
        }
        if (text.len)
            file_judge(f, out_append(o, &text), traces);
        strbuf_fini(&text);
    }
}

static void write_numbered(struct tracing_file *f, struct list *records)
{
    struct strbuf path = STRBUF_INIT;
    strbuf_printf(&path, "%s.%" PRIu64, f->plain.path, f->numbered++);
    struct trace_out o = {.path = strbuf_take(&path), .fd = -1};
    write_records(f, &o, records);
    out_close(&o);
    mem_free(o.path);
}

static struct file_chunk *file_next_chunk(struct tracing_file *f)
{
    mutex_lock(&f->lock);
    struct list *node = list_pop(&f->chunks);
    f->writing = node != NULL;
    mutex_unlock(&f->lock);
    return node ? LIST_ITEM(node, struct file_chunk, node) : NULL;
}

static void file_write(struct crew_job *job, void *own)
{
    (void)own;
    struct tracing_file *f = LIST_ITEM(job, struct tracing_file, job);
    struct file_chunk *c;
    while ((c = file_next_chunk(f))) {
        if (c->numbered)
            write_numbered(f, &c->records);
        else
            write_records(f, &f->plain, &c->records);
        mem_free(c);
    }
}

struct tracing_file *tracing_file_new(const char *path)
{
    static const struct crew_kind kind = {.name = "tracer", .most = 1, .idle = FILE_IDLE};
    struct tracing_file *f = MEM_NEW(struct tracing_file);
    f->crew = crew_new(&kind, NULL);
    f->job.run = file_write;
    mutex_init(&f->lock, MUTEX_RANK_LEAF);
    list_init(&f->chunks);
    f->plain = (struct trace_out){.path = mem_strdup(path), .fd = -1};
    return f;
}

void tracing_file_push(struct tracing_file *f, struct list *records, bool numbered)
{
    struct file_chunk *c = MEM_NEW(struct file_chunk);
    c->numbered = numbered;
    list_init(&c->records);
    list_splice(&c->records, records);
    mutex_lock(&f->lock);
    list_append(&f->chunks, &c->node);
    bool begin = !f->writing;
    f->writing = true;
    mutex_unlock(&f->lock);
    if (!begin || crew_add(f->crew, &f->job))
        return;
    /* No thread to be had: said by the crew. The next trace asks again. */
    mutex_lock(&f->lock);
    f->writing = false;
    mutex_unlock(&f->lock);
}

void tracing_file_free(struct tracing_file *f)
{
    if (!f)
        return;
    mutex_lock(&f->lock);
    bool begin = !f->writing && !list_empty(&f->chunks);
    mutex_unlock(&f->lock);
    if (begin)
        crew_do(f->crew, &f->job);
    crew_free(f->crew);
    out_close(&f->plain);
    mem_free(f->plain.path);
    mutex_fini(&f->lock);
    LIST_EACH (node, &f->chunks) {
        struct file_chunk *c = LIST_ITEM(node, struct file_chunk, node);
        file_forget(&c->records);
        mem_free(c);
    }
    mem_free(f);
}
