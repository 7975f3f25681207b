#include "metrics/custom.h"

#include "base/list.h"
#include "base/mem.h"
#include "metrics/prometheus.h"
#include "os/mutex.h"

#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAMILY_MAGIC 0x4346414du
#define METRIC_MAGIC 0x434d4554u

/* A family as the page shows it; several handles may share it. */
struct table {
    struct list node; /* in tables */
    struct list cells;
    char *name;
    char *help;
    enum custom_kind kind;
    unsigned handles;
    unsigned cell_count;
};

/* The value of all metrics with the same labels. */
struct cell {
    struct list node; /* linked into table->cells */
    char *labels;     /* as the page shows them, sorted by name */
    unsigned metrics; /* how many metrics share it */
    /* Relaxed, because a reader needs no order between numbers. */
    _Atomic(double) value;
    struct mutex lock; /* rank LEAF; guards a histogram's counts and sum */
    double *bounds;
    uint64_t *counts; /* bound_count + 1 counts; not cumulative */
    size_t bound_count;
    double sum;
};

struct custom_family {
    uint32_t magic;
    struct table *table;
    unsigned metrics; /* guarded by registry */
};

struct custom_metric {
    uint32_t magic;
    struct custom_family *family;
    struct cell *cell;
};

/* guards tables and their contents */
static struct mutex registry = MUTEX_INIT(MUTEX_RANK_REGISTRY);
static struct list tables = {&tables, &tables};
static unsigned table_count;

/* The families of the server; those that are `split` are histograms and summaries. */
static const struct own {
    const char *name;
    bool split;
} own_families[] = {
#define METRIC_MODEL(type, name, unit, field, help)   {#name, false},
#define METRIC_REASON(name, help)                     {#name, false},
#define METRIC_HISTOGRAM(name, index, help)           {#name, true},
#define METRIC_SUMMARY(name, index, help)             {#name, true},
#define METRIC_BOUNDED(name, field, help)             {#name, true},
#define METRIC_BATCHES(name, help)                    {#name, true},
#define METRIC_CACHE(name, field, help)               {#name, false},
#define METRIC_FRONT(type, name, field, help)         {#name, false},
#define METRIC_REQUESTS(name, help)                   {#name, false},
#define METRIC_PROCESS(type, name, unit, field, help) {#name, false},
#define METRIC_GPU(type, name, unit, field, help)     {#name, false},
#define METRIC_BUILD(name, help)                      {#name, false},
#include "metrics/metric.def"
};

static bool is_word(const char *s, bool colons)
{
    if (!*s || (*s >= '0' && *s <= '9'))
        return false;
    for (; *s; s++) {
        bool letter = (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') || *s == '_';
        if (!letter && !(*s >= '0' && *s <= '9') && !(colons && *s == ':'))
            return false;
    }
    return true;
}

/* True if `name` is the family, or of one that is split one of its series. */
static bool is_series(const char *name, const char *family, bool split)
{
    static const char *const ends[] = {"", "_bucket", "_sum", "_count"};
    size_t len = strlen(family);
    bool found = false;
    for (size_t i = 0; i < (split ? 4 : 1) && strncmp(name, family, len) == 0; i++)
        found = found || strcmp(name + len, ends[i]) == 0;
    return found;
}

static struct err *custom_check_name(enum custom_kind kind, const char *name)
{
    if (!is_word(name, true))
        return err_new(STATUS_INVALID_ARG,
                       "metric family '%s': expected a name of letters, digits, '_' and ':'", name);
    for (size_t i = 0; i < sizeof(own_families) / sizeof(own_families[0]); i++) {
        const struct own *o = &own_families[i];
        if (is_series(name, o->name, o->split) ||
            is_series(o->name, name, kind == CUSTOM_HISTOGRAM))
            return err_new(STATUS_INVALID_ARG,
                           "metric family '%s': its samples would be those of the server's own "
                           "family '%s'",
                           name, o->name);
    }
    return NULL;
}

/* Finds the table of a family. Caller holds the registry. */
static struct table *find_table(const char *name)
{
    LIST_EACH (node, &tables) {
        struct table *t = LIST_ITEM(node, struct table, node);
        if (strcmp(t->name, name) == 0)
            return t;
    }
    return NULL;
}

/* Finds or makes the table of a family. Caller holds the registry. */
static struct err *join_table(enum custom_kind kind, const char *name, const char *help,
                              struct table **ret)
{
    struct table *t = find_table(name);
    if (t && t->kind != kind)
        return err_new(STATUS_INVALID_ARG, "metric family '%s' is there already, with another kind",
                       name);
    if (!t && table_count == CUSTOM_MAX_FAMILIES)
        return err_new(STATUS_UNAVAILABLE, "there are %u metric families already", table_count);
    if (!t) {
        t = MEM_NEW(struct table);
        t->name = mem_strdup(name);
        t->help = mem_strdup(help);
        t->kind = kind;
        list_init(&t->cells);
        list_append(&tables, &t->node);
        table_count++;
    }
    t->handles++;
    *ret = t;
    return NULL;
}

struct err *custom_family_new(enum custom_kind kind, const char *name, const char *help,
                              struct custom_family **ret)
{
    if (kind != CUSTOM_COUNTER && kind != CUSTOM_GAUGE && kind != CUSTOM_HISTOGRAM)
        return err_new(STATUS_INVALID_ARG, "metric family '%s': unknown kind %d", name, (int)kind);
    struct err *e = custom_check_name(kind, name);
    if (e)
        return e;
    struct table *t = NULL;
    mutex_lock(&registry);
    e = join_table(kind, name, help, &t);
    mutex_unlock(&registry);
    if (e)
        return e;
    struct custom_family *f = MEM_NEW(struct custom_family);
    f->magic = FAMILY_MAGIC;
    f->table = t;
    *ret = f;
    return NULL;
}

struct err *custom_family_free(struct custom_family *f)
{
    if (!f)
        return NULL;
    mutex_lock(&registry);
    unsigned left = f->metrics;
    struct table *t = f->table;
    bool last = !left && --t->handles == 0;
    if (last) {
        list_remove(&t->node);
        table_count--;
    }
    mutex_unlock(&registry);
    if (left)
        return err_new(STATUS_INTERNAL,
                       "metric family '%s' has %u metrics: delete them before the family", t->name,
                       left);
    if (last) {
        mem_free(t->name);
        mem_free(t->help);
        mem_free(t);
    }
    f->magic = 0;
    mem_free(f);
    return NULL;
}

static int custom_by_name(const void *a, const void *b)
{
    const struct custom_label *const *x = a;
    const struct custom_label *const *y = b;
    int order = strcmp((*x)->name, (*y)->name);
    return order ? order : (*x < *y ? -1 : 1);
}

/* The labels as the page shows them; equal sets give equal texts. */
static char *print_labels(const struct custom_label *labels, size_t count)
{
    const struct custom_label **sorted = mem_alloc((count + 1) * sizeof(*sorted));
    for (size_t i = 0; i < count; i++)
        sorted[i] = &labels[i];
    if (count)
        qsort(sorted, count, sizeof(*sorted), custom_by_name);
    struct strbuf sb = STRBUF_INIT;
    for (size_t i = 0; i < count; i++)
        if (i + 1 == count || strcmp(sorted[i]->name, sorted[i + 1]->name) != 0)
            prometheus_label(&sb, sorted[i]->name, sorted[i]->value);
    mem_free(sorted);
    return strbuf_take(&sb);
}

static struct err *check_metric(const struct table *t, const struct custom_label *labels,
                                size_t count, const double *bounds, size_t bound_count)
{
    bool histogram = t->kind == CUSTOM_HISTOGRAM;
    for (size_t i = 0; i < count; i++)
        if (!is_word(labels[i].name, false) || strncmp(labels[i].name, "__", 2) == 0 ||
            (histogram && strcmp(labels[i].name, "le") == 0))
            return err_new(STATUS_INVALID_ARG, "metric of '%s': '%s' cannot be a label's name",
                           t->name, labels[i].name);
    if (bounds && !histogram)
        return err_new(STATUS_INVALID_ARG,
                       "metric of '%s': buckets are for histograms, this is a %s", t->name,
                       t->kind == CUSTOM_COUNTER ? "counter" : "gauge");
    if (!bounds && histogram)
        return err_new(STATUS_INVALID_ARG, "metric of '%s': a histogram needs bucket boundaries",
                       t->name);
    if (bound_count > CUSTOM_MAX_BUCKETS)
        return err_new(STATUS_INVALID_ARG, "metric of '%s': expected at most %u buckets, found %zu",
                       t->name, CUSTOM_MAX_BUCKETS, bound_count);
    for (size_t i = 0; i < bound_count; i++)
        if (isnan(bounds[i]) || (i && bounds[i] <= bounds[i - 1]))
            return err_new(STATUS_INVALID_ARG,
                           "metric of '%s': bucket boundaries have to rise, found %g after %g",
                           t->name, bounds[i], i ? bounds[i - 1] : bounds[i]);
    return NULL;
}

static struct cell *cell_new(struct table *t, char *labels, const double *bounds,
                             size_t bound_count)
{
    struct cell *c = MEM_NEW(struct cell);
    c->labels = labels;
    mutex_init(&c->lock, MUTEX_RANK_LEAF);
    if (bounds) {
        c->bound_count = bound_count;
        c->bounds = mem_alloc((bound_count + 1) * sizeof(*c->bounds));
        if (bound_count)
            memcpy(c->bounds, bounds, bound_count * sizeof(*bounds));
        c->counts = mem_zalloc((bound_count + 1) * sizeof(*c->counts));
    }
    list_append(&t->cells, &c->node);
    t->cell_count++;
    return c;
}

/* Finds or makes the cell with these labels, which it takes over. Caller holds the registry. */
static struct err *join_cell(struct table *t, char *labels, const double *bounds,
                             size_t bound_count, struct cell **ret)
{
    struct cell *c = NULL;
    LIST_EACH (node, &t->cells)
        if (!c && strcmp(LIST_ITEM(node, struct cell, node)->labels, labels) == 0)
            c = LIST_ITEM(node, struct cell, node);
    if (!c && t->cell_count == CUSTOM_MAX_METRICS) {
        mem_free(labels);
        return err_new(STATUS_UNAVAILABLE, "metric family '%s' has %u metrics already", t->name,
                       t->cell_count);
    }
    if (c)
        mem_free(labels);
    else
        c = cell_new(t, labels, bounds, bound_count);
    c->metrics++;
    *ret = c;
    return NULL;
}

struct err *custom_metric_new(struct custom_family *f, const struct custom_label *labels,
                              size_t count, const double *bounds, size_t bound_count,
                              struct custom_metric **ret)
{
    struct table *t = f->table;
    struct err *e = check_metric(t, labels, count, bounds, bound_count);
    if (e)
        return e;
    char *text = print_labels(labels, count);
    struct cell *c = NULL;
    mutex_lock(&registry);
    e = join_cell(t, text, bounds, bound_count, &c);
    if (!e)
        f->metrics++;
    mutex_unlock(&registry);
    if (e)
        return e;
    struct custom_metric *m = MEM_NEW(struct custom_metric);
    m->magic = METRIC_MAGIC;
    m->family = f;
    m->cell = c;
    *ret = m;
    return NULL;
}

void custom_metric_free(struct custom_metric *m)
{
    if (!m)
        return;
    struct cell *c = m->cell;
    mutex_lock(&registry);
    m->family->metrics--;
    bool last = --c->metrics == 0;
    if (last) {
        list_remove(&c->node);
        m->family->table->cell_count--;
    }
    mutex_unlock(&registry);
    if (last) {
        mem_free(c->labels);
        mem_free(c->bounds);
        mem_free(c->counts);
        mutex_fini(&c->lock);
        mem_free(c);
    }
    m->magic = 0;
    mem_free(m);
}

enum custom_kind custom_family_kind(const struct custom_family *f)
{
    return f->table->kind;
}

enum custom_kind custom_metric_kind(const struct custom_metric *m)
{
    return m->family->table->kind;
}

struct custom_family *custom_family_of(void *handle)
{
    struct custom_family *f = handle;
    return f && f->magic == FAMILY_MAGIC ? f : NULL;
}

struct custom_metric *custom_metric_of(void *handle)
{
    struct custom_metric *m = handle;
    return m && m->magic == METRIC_MAGIC ? m : NULL;
}

static const char *custom_kind_name(enum custom_kind kind)
{
    static const char *const names[] = {"counter", "gauge", "histogram"};
    return names[kind];
}

static struct err *wrong_kind(const struct custom_metric *m, const char *what)
{
    return err_new(STATUS_UNSUPPORTED, "metric of '%s': a %s cannot be %s", m->family->table->name,
                   custom_kind_name(custom_metric_kind(m)), what);
}

struct err *custom_value(struct custom_metric *m, double *ret)
{
    if (custom_metric_kind(m) == CUSTOM_HISTOGRAM)
        return wrong_kind(m, "read as one value");
    *ret = atomic_load_explicit(&m->cell->value, memory_order_relaxed);
    return NULL;
}

struct err *custom_add(struct custom_metric *m, double step)
{
    if (custom_metric_kind(m) == CUSTOM_HISTOGRAM)
        return wrong_kind(m, "incremented");
    if (custom_metric_kind(m) == CUSTOM_COUNTER && !(step >= 0.0))
        return err_new(STATUS_INVALID_ARG,
                       "metric of '%s': a counter grows only, it cannot be incremented by %g",
                       m->family->table->name, step);
    double old = atomic_load_explicit(&m->cell->value, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&m->cell->value, &old, old + step,
                                                  memory_order_relaxed, memory_order_relaxed))
        ;
    return NULL;
}

struct err *custom_set(struct custom_metric *m, double value)
{
    if (custom_metric_kind(m) != CUSTOM_GAUGE)
        return wrong_kind(m, "set");
    atomic_store_explicit(&m->cell->value, value, memory_order_relaxed);
    return NULL;
}

struct err *custom_observe(struct custom_metric *m, double value)
{
    if (custom_metric_kind(m) != CUSTOM_HISTOGRAM)
        return wrong_kind(m, "observed");
    struct cell *c = m->cell;
    size_t i = 0;
    while (i < c->bound_count && !(value <= c->bounds[i]))
        i++;
    mutex_lock(&c->lock);
    c->counts[i]++;
    c->sum += value;
    mutex_unlock(&c->lock);
    return NULL;
}

/* Prints the shortest text that reads back as the same value. */
static void print_double(double v, char *text, size_t size)
{
    if (isnan(v)) {
        snprintf(text, size, "NaN");
    } else if (isinf(v)) {
        snprintf(text, size, "%s", v > 0 ? "+Inf" : "-Inf");
    } else {
        for (int digits = 6; digits <= 17; digits++) {
            snprintf(text, size, "%.*g", digits, v);
            if (strtod(text, NULL) == v)
                break;
        }
    }
}

static void put_sample(struct strbuf *out, const char *name, const char *suffix, const char *labels,
                       const char *value)
{
    bool braces = *labels != '\0';
    strbuf_printf(out, "%s%s%s%s%s %s\n", name, suffix, braces ? "{" : "", labels,
                  braces ? "}" : "", value);
}

static void put_histogram(struct strbuf *out, const struct table *t, struct cell *c)
{
    char text[40];
    uint64_t *counts = mem_alloc((c->bound_count + 1) * sizeof(*counts));
    mutex_lock(&c->lock);
    memcpy(counts, c->counts, (c->bound_count + 1) * sizeof(*counts));
    double sum = c->sum;
    mutex_unlock(&c->lock);
    uint64_t total = 0;
    for (size_t i = 0; i <= c->bound_count; i++) {
        total += counts[i];
        print_double(i < c->bound_count ? c->bounds[i] : INFINITY, text, sizeof(text));
        struct strbuf labels = STRBUF_INIT;
        strbuf_puts(&labels, c->labels);
        prometheus_label(&labels, "le", text);
        prometheus_sample(out, t->name, "_bucket", strbuf_str(&labels), total);
        strbuf_fini(&labels);
    }
    print_double(sum, text, sizeof(text));
    put_sample(out, t->name, "_sum", c->labels, text);
    prometheus_sample(out, t->name, "_count", c->labels, total);
    mem_free(counts);
}

static void put_table(struct strbuf *out, struct table *t)
{
    prometheus_family(out, t->name, custom_kind_name(t->kind), t->help);
    LIST_EACH (node, &t->cells) {
        struct cell *c = LIST_ITEM(node, struct cell, node);
        char text[40];
        if (t->kind == CUSTOM_HISTOGRAM) {
            put_histogram(out, t, c);
            continue;
        }
        print_double(atomic_load_explicit(&c->value, memory_order_relaxed), text, sizeof(text));
        put_sample(out, t->name, "", c->labels, text);
    }
}

void custom_render(struct strbuf *out)
{
    mutex_lock(&registry);
    LIST_EACH (node, &tables) {
        struct table *t = LIST_ITEM(node, struct table, node);
        if (!list_empty(&t->cells))
            put_table(out, t);
    }
    mutex_unlock(&registry);
}
