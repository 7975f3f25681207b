#include "tracing/tracing.h"

#include "base/list.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "cloud/web/url.h"
#include "infer/trace.h"
#include "os/mutex.h"
#include "server/options/options_trace.h"
#include "tracing/tracing_export.h"
#include "tracing/tracing_file.h"
#include "tracing/tracing_list.h"
#include "tracing/tracing_record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Traces of a set of settings that may wait for the others of their file; and those of all sets
 * together, which leaves half of the room to those that are made and written. */
#define WAITING_BYTES     ((size_t)8 << 20)
#define ALL_WAITING_BYTES (TRACING_RECORD_MOST_BYTES / 2)

#define DEFAULT_ENDPOINT "http://localhost:4318"
#define ENDPOINT_PATH    "/v1/traces"
#define DEFAULT_SERVICE  "service.name=triton-inference-server"

/* One set of settings that holds, or held: traces that it began keep it. */
struct tracing_setting {
    struct tracing *tracing;
    atomic_uint refs;
    bool live;         /* not off, and traces have somewhere to go */
    struct mutex lock; /* rank LEAF; guards what follows */
    struct tracing_choice choice;
    struct tracing_drawn drawn;
    struct list ended; /* records that wait to be written */
    uint64_t waiting;  /* how many */
    size_t waiting_bytes;
    uint64_t ended_count; /* that ever did */
};

/* What the mode adds: three settings that are always there, and those that were given. */
struct telemetry {
    char *url;   /* owned */
    char *shown; /* owned: what clients are told of it */
    uint32_t queue, delay_ms, batch;
    char numbers[3][12];
};

struct tracing {
    struct tracing_switch on; /* first: tracing_on */
    const struct options_trace *options;
    struct tracing_values defaults;
    bool has_target;
    struct tracing_file *file;     /* NULL = none */
    struct tracing_export *export; /* NULL = the mode is triton */
    struct telemetry telemetry;
    _Atomic(size_t) waiting_bytes;  /* of all settings; relaxed: a sum that orders nothing */
    struct mutex lock;              /* rank THREAD; guards what follows */
    struct tracing_setting *global; /* a reference */
    struct map models;              /* by name: a struct tracing_setting, a reference */
};

static struct tracing_setting *setting_new(struct tracing *t, const struct tracing_choice *c)
{
    struct tracing_setting *s = MEM_NEW(struct tracing_setting);
    s->tracing = t;
    atomic_init(&s->refs, 1);
    mutex_init(&s->lock, MUTEX_RANK_LEAF);
    s->choice = *c;
    s->live = c->values.level && t->has_target && (c->values.rate || t->export);
    list_init(&s->ended);
    return s;
}

/* Counts what waits, more or less of it. Returns true when that is much. */
static bool setting_wait(struct tracing_setting *s, size_t bytes)
{
    s->waiting_bytes += bytes;
    size_t before =
        atomic_fetch_add_explicit(&s->tracing->waiting_bytes, bytes, memory_order_relaxed);
    return s->waiting_bytes > WAITING_BYTES || before + bytes > ALL_WAITING_BYTES;
}

/* Writes what waits; the caller holds no lock. */
static void setting_flush(struct tracing_setting *s, struct list *records, bool numbered)
{
    if (!list_empty(records))
        tracing_file_push(s->tracing->file, records, numbered);
}

static void setting_unref(struct tracing_setting *s)
{
    /* Acquire and release: the last one sees what others put in. */
    if (!s || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1)
        return;
    setting_wait(s, -s->waiting_bytes);
    setting_flush(s, &s->ended, s->choice.values.frequency != 0);
    mutex_fini(&s->lock);
    mem_free(s);
}

/* A trace of the settings has ended; it waits for others of them, or is on its way with those that
 * did.
 * r  NULL: there was no room for it */
static void setting_ended(struct tracing_setting *s, struct tracing_record *r)
{
    struct list due;
    list_init(&due);
    mutex_lock(&s->lock);
    if (r)
        list_append(&s->ended, &r->node);
    s->waiting += r != NULL;
    s->ended_count++;
    bool full = setting_wait(s, r ? r->charged : 0);
    enum tracing_flush flush =
        tracing_settings_flush(&s->choice.values, &s->drawn, s->waiting, s->ended_count, full);
    if (flush != TRACING_FLUSH_LATER) {
        list_splice(&due, &s->ended);
        s->waiting = 0;
        setting_wait(s, -s->waiting_bytes);
    }
    mutex_unlock(&s->lock);
    setting_flush(s, &due, flush == TRACING_FLUSH_NUMBERED);
}

/* A record is whole. */
static void tracing_done(struct tracing_record *r)
{
    struct tracing_setting *s = r->owner;
    if (r->lost)
        LOG_WARN("a trace lacks %u activities or tensors: there was no room for them", r->lost);
    if (s->tracing->export)
        tracing_export_push(s->tracing->export, r);
    else
        setting_ended(s, r);
    setting_unref(s);
}

/* The settings that hold for a model; t->lock is held. */
static struct tracing_setting *setting_of(const struct tracing *t, const char *model)
{
    struct tracing_setting *s = *model ? map_get(&t->models, model, strlen(model)) : NULL;
    return s ? s : t->global;
}

bool tracing_wants_context(const struct tracing *t)
{
    return t->export != NULL;
}

struct tracing_record *tracing_begin(struct tracing *t, const char *model,
                                     struct tracing_header traceparent,
                                     struct tracing_header tracestate)
{
    struct tracing_context context;
    bool forced = t->export && traceparent.text &&
                  tracing_context_parse(traceparent.text, traceparent.len, &context);
    mutex_lock(&t->lock);
    struct tracing_setting *s = setting_of(t, model);
    bool live = s->live;
    if (live)
        atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    mutex_unlock(&t->lock);
    if (!live)
        return NULL;
    mutex_lock(&s->lock);
    bool drawn = tracing_settings_draw(&s->choice.values, &s->drawn, forced);
    uint32_t level = s->choice.values.level;
    mutex_unlock(&s->lock);
    struct tracing_record *r = drawn ? tracing_record_new(level, tracing_done, s) : NULL;
    if (drawn && !r) {
        LOG_WARN("a request is not traced: traces hold %zu bytes already", tracing_record_held());
        setting_ended(s, NULL);
    }
    if (!r)
        setting_unref(s);
    else if (t->export)
        tracing_record_spans(r, forced ? &context : NULL, tracestate.text, tracestate.len);
    return r;
}

void tracing_follow(struct tracing_record *record, struct request *r, const char *model,
                    int64_t version)
{
    trace_request(r, tracing_record_trace(record), model, version);
}

void tracing_mark(struct tracing_record *record, const char *name, time_ns when)
{
    tracing_record_mark(record, name, when);
}

void tracing_end(struct tracing_record *record)
{
    if (record)
        tracing_record_unref(record);
}

/* As they are now: of the count, what is left. */
static struct tracing_choice setting_choice(struct tracing_setting *s)
{
    mutex_lock(&s->lock);
    struct tracing_choice c = s->choice;
    mutex_unlock(&s->lock);
    return c;
}

/* A settings object after a change; t->lock is held.
 * current  NULL = none yet
 * ret      NULL where a model has none of its own any more */
static struct err *resolve(struct tracing *t, const struct tracing_values *behind, bool of_model,
                           struct tracing_setting *current, const struct tracing_change *c,
                           struct tracing_setting **ret)
{
    struct tracing_choice before;
    if (current)
        before = setting_choice(current);
    struct tracing_choice after = tracing_settings_resolve(behind, current ? &before : NULL, c);
    const char *reason;
    *ret = NULL;
    if (of_model && !after.specified)
        return NULL;
    if (after.values.level && !tracing_settings_valid(&after.values, t->has_target, &reason) &&
        (*reason || c->set & TRACING_COUNT)) /* a count that ran out is no mistake of this change */
        return err_new(STATUS_INVALID_ARG, "Attempting to set invalid trace setting :%s", reason);
    *ret = setting_new(t, &after);
    return NULL;
}

/* Settings that are let go once the lock is free: that may write. */
struct replaced {
    struct tracing_setting **list;
    size_t count;
};

static void replaced_add(struct replaced *r, struct tracing_setting *s)
{
    if (!s)
        return;
    r->list = mem_realloc(r->list, (r->count + 1) * sizeof(*r->list));
    r->list[r->count++] = s;
}

static struct err *change_model(struct tracing *t, const char *model,
                                const struct tracing_change *c, struct replaced *old)
{
    size_t len = strlen(model);
    struct tracing_values behind = setting_choice(t->global).values;
    struct tracing_setting *fresh;
    struct err *e = resolve(t, &behind, true, map_get(&t->models, model, len), c, &fresh);
    if (!e)
        replaced_add(old, fresh ? map_put(&t->models, model, len, fresh)
                                : map_remove(&t->models, model, len));
    return e;
}

/* All settings of models anew: what is not specified for them follows. Into `ret`, by name. */
static struct err *follow(struct tracing *t, const struct tracing_values *behind, struct map *ret)
{
    static const struct tracing_change nothing;
    struct err *e = NULL;
    const char *name;
    void *value;
    for (size_t pos = 0; !e && map_next(&t->models, &pos, &name, &value);) {
        struct tracing_setting *fresh;
        e = resolve(t, behind, true, value, &nothing, &fresh);
        if (!e)
            map_put(ret, name, strlen(name), fresh);
    }
    return e;
}

static void replaced_add_all(struct replaced *old, struct map *settings)
{
    const char *name;
    void *value;
    for (size_t pos = 0; map_next(settings, &pos, &name, &value);)
        replaced_add(old, value);
    map_fini(settings);
}

/* All or nothing: where the settings of one model would be none, nothing is changed. */
static struct err *change_all(struct tracing *t, const struct tracing_change *c,
                              struct replaced *old)
{
    struct tracing_setting *fresh;
    struct map models = MAP_INIT;
    struct err *e = resolve(t, &t->defaults, false, t->global, c, &fresh);
    if (!e)
        e = follow(t, &fresh->choice.values, &models);
    if (e) {
        replaced_add(old, fresh);
        replaced_add_all(old, &models);
        return e;
    }
    replaced_add(old, t->global);
    replaced_add_all(old, &t->models);
    t->global = fresh;
    t->models = models;
    return NULL;
}

static void look_whether_on(struct tracing *t)
{
    bool on = t->global->live;
    const char *name;
    void *value;
    for (size_t pos = 0; map_next(&t->models, &pos, &name, &value);)
        on |= ((const struct tracing_setting *)value)->live;
    atomic_store_explicit(&t->on.on, on, memory_order_relaxed);
}

struct err *tracing_change(struct tracing *t, const char *model, const struct tracing_change *c)
{
    struct replaced old = {0};
    mutex_lock(&t->lock);
    struct err *e = *model ? change_model(t, model, c, &old) : change_all(t, c, &old);
    if (!e)
        look_whether_on(t);
    mutex_unlock(&t->lock);
    for (size_t i = 0; i < old.count; i++)
        setting_unref(old.list[i]);
    mem_free(old.list);
    return e;
}

static void tell_more(struct tracing_told *told, const char *key, const char *value)
{
    if (told->more_count == TRACING_MOST_TOLD)
        return;
    told->more[told->more_count].key = key;
    told->more[told->more_count++].value = value;
}

size_t tracing_told_next(const struct tracing_told *told, size_t i)
{
    size_t next = i + 1;
    while (next < told->more_count && strcmp(told->more[next].key, told->more[i].key) != 0)
        next++;
    return next;
}

bool tracing_told_first(const struct tracing_told *told, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (strcmp(told->more[k].key, told->more[i].key) == 0)
            return false;
    return true;
}

static const char *const bsp_keys[3] = {"bsp_max_queue_size", "bsp_schedule_delay",
                                        "bsp_max_export_batch_size"};

/* The last that was given. */
static const char *setting_value(const struct options_trace *o, const char *key)
{
    const char *found = NULL;
    for (size_t i = 0; i < o->setting_count; i++)
        if (strcmp(o->settings[i].key, key) == 0)
            found = o->settings[i].value;
    return found;
}

void tracing_tell(struct tracing *t, const char *model, struct tracing_told *ret)
{
    const struct options_trace *o = t->options;
    mutex_lock(&t->lock);
    ret->values = setting_choice(setting_of(t, model)).values;
    mutex_unlock(&t->lock);
    ret->file = o->opentelemetry ? NULL : o->file ? o->file : "";
    ret->mode = o->opentelemetry ? "opentelemetry" : "triton";
    ret->more_count = 0;
    if (!o->opentelemetry)
        return;
    for (size_t i = 0; i < o->setting_count; i++) {
        const char *key = o->settings[i].key, *value = o->settings[i].value;
        if (value != setting_value(o, key) && strcmp(key, "resource") != 0)
            continue; /* a later one holds; resources are added up */
        tell_more(ret, key, strcmp(key, "url") == 0 ? t->telemetry.shown : value);
    }
    for (size_t i = 0; i < 3; i++)
        if (!setting_value(o, bsp_keys[i]))
            tell_more(ret, bsp_keys[i], t->telemetry.numbers[i]);
}

/* A number of the options, else of the environment, else the usual one. */
static struct err *telemetry_number(const struct options_trace *o, const char *key,
                                    const char *variable, const char *usual, char told[12],
                                    uint32_t *ret)
{
    const char *text = setting_value(o, key), *of = getenv(variable);
    if (!text)
        text = of && *of ? of : usual;
    char *end;
    errno = 0;
    unsigned long n = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno || n > INT32_MAX)
        return err_new(STATUS_INVALID_ARG,
                       "variable %s: expected a number from 0 to 2147483647, found '%s'", variable,
                       text);
    *ret = (uint32_t)n;
    snprintf(told, 12, "%lu", n);
    return NULL;
}

/* Where the collector is: what the options say, else the variables of OpenTelemetry. */
static char *telemetry_url(const char *option)
{
    const char *whole = option ? option : getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
    if (whole && *whole)
        return mem_strdup(whole);
    const char *base = getenv("OTEL_EXPORTER_OTLP_ENDPOINT");
    base = base && *base ? base : DEFAULT_ENDPOINT;
    size_t len = strlen(base);
    len -= base[len - 1] == '/';
    struct strbuf url = STRBUF_INIT;
    strbuf_append(&url, base, len);
    strbuf_puts(&url, ENDPOINT_PATH);
    return strbuf_take(&url);
}

static struct err *read_telemetry(struct tracing *t)
{
    const struct options_trace *o = t->options;
    struct telemetry *m = &t->telemetry;
    m->url = telemetry_url(setting_value(o, "url"));
    struct strbuf shown = STRBUF_INIT;
    url_for_all(&shown, m->url);
    m->shown = strbuf_take(&shown);
    struct err *e = telemetry_number(o, bsp_keys[0], "OTEL_BSP_MAX_QUEUE_SIZE", "2048",
                                     m->numbers[0], &m->queue);
    if (!e)
        e = telemetry_number(o, bsp_keys[1], "OTEL_BSP_SCHEDULE_DELAY", "5000", m->numbers[1],
                             &m->delay_ms);
    if (!e)
        e = telemetry_number(o, bsp_keys[2], "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "512", m->numbers[2],
                             &m->batch);
    return e;
}

static struct err *open_export(struct tracing *t)
{
    const struct options_trace *o = t->options;
    struct err *e = read_telemetry(t);
    if (e)
        return e;
    /* The last of a key counts: what OpenTelemetry's variable says comes first. */
    const char *resource[TRACING_LIST_MOST + 1 + OPTIONS_MAX_TRACE_SETTINGS];
    struct tracing_list variable;
    size_t count = 0;
    tracing_list_read(&variable, "OTEL_RESOURCE_ATTRIBUTES");
    for (size_t i = 0; i < variable.count; i++)
        resource[count++] = variable.entries[i];
    resource[count++] = DEFAULT_SERVICE;
    for (size_t i = 0; i < o->setting_count; i++)
        if (strcmp(o->settings[i].key, "resource") == 0)
            resource[count++] = o->settings[i].value;
    e = tracing_export_new(
        &(struct tracing_export_settings){.url = t->telemetry.url,
                                          .resource = resource,
                                          .resource_count = count,
                                          .queue = t->telemetry.queue,
                                          .batch = t->telemetry.batch,
                                          .delay = TIME_MS(t->telemetry.delay_ms)},
        &t->export);
    tracing_list_fini(&variable);
    return e;
}

struct err *tracing_open(const struct options_trace *o, struct tracing **ret)
{
    struct tracing *t = MEM_NEW(struct tracing);
    t->options = o;
    t->defaults = (struct tracing_values){.level = o->off ? 0 : o->level,
                                          .rate = o->rate,
                                          .count = o->count,
                                          .frequency = o->frequency};
    mutex_init(&t->lock, MUTEX_RANK_THREAD);
    t->has_target = o->opentelemetry || o->file;
    struct err *e = o->opentelemetry ? open_export(t) : NULL;
    if (!o->opentelemetry && o->file)
        t->file = tracing_file_new(o->file);
    t->global = setting_new(t, &(struct tracing_choice){.values = t->defaults});
    look_whether_on(t);
    if (e) {
        tracing_close(t, 0);
        return err_wrap(e, "option --trace-config");
    }
    *ret = t;
    return NULL;
}

void tracing_close(struct tracing *t, time_ns most)
{
    if (!t)
        return;
    setting_unref(t->global);
    const char *name;
    void *value;
    for (size_t pos = 0; map_next(&t->models, &pos, &name, &value);)
        setting_unref(value);
    map_fini(&t->models);
    tracing_export_free(t->export, most);
    tracing_file_free(t->file);
    mem_free(t->telemetry.url);
    mem_free(t->telemetry.shown);
    mutex_fini(&t->lock);
    mem_free(t);
}
