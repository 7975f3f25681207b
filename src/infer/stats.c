#include "infer/stats.h"

#include "base/mem.h"
#include "infer/response_stats.h"
#include "os/thread.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define BATCH_CHAINS 16u
#define OTHER_CLOCK  TIME_S(1000000000) /* 31 years: no monotonic time is later */

/* Every counter below is relaxed, because readers need no order between counters. */
typedef atomic_uint_fast64_t stats_counter;

/* Executions with one batch size; kept as long as the statistics live. */
struct batch {
    struct batch *next; /* constant once published */
    uint32_t size;
    stats_counter count;
    stats_counter input_ns;
    stats_counter infer_ns;
    stats_counter output_ns;
};

struct stats_of_thread {
    stats_counter success;
    /* The rows of successful requests minus the number of requests, so that a request with the
     * usual single row adds nothing. */
    stats_counter more_rows;
    stats_counter request_ns;
    stats_counter queue_ns;
    stats_counter input_ns;
    stats_counter infer_ns;
    stats_counter output_ns;
    stats_counter executions;
    struct histogram hists[STATS_HISTS];
    stats_counter last_ms;
    stats_counter failures[STATS_REASONS];
    stats_counter fail_ns;
    stats_counter hits;
    stats_counter hit_ns;
    stats_counter misses;
    stats_counter miss_ns;
    /* A push releases the new entry; a walk over the chain acquires it. */
    _Atomic(struct batch *) batches[BATCH_CHAINS];
};

struct stats {
    time_ns made;
    /* Published with release, so that readers see zeroed counters. */
    _Atomic(struct stats_of_thread *) slots[THREAD_SLOTS];
    /* Published with release, like a slot; NULL until the first report. */
    _Atomic(struct response_stats *) responses;
};

const char *stats_reason_name(enum stats_reason reason)
{
    switch (reason) {
    case STATS_REJECTED:
        return "REJECTED";
    case STATS_CANCELED:
        return "CANCELED";
    case STATS_BACKEND:
        return "BACKEND";
    case STATS_OTHER:
    case STATS_REASONS:
        break;
    }
    return "OTHER";
}

struct stats *stats_new(void)
{
    struct stats *s = MEM_NEW(struct stats);
    s->made = clock_now_ns();
    return s;
}

static atomic_bool keep_parts; /* set before the server serves; orders nothing */

void stats_keep_parts(void)
{
    atomic_store_explicit(&keep_parts, true, memory_order_relaxed);
}

static bool parts_kept(void)
{
    return atomic_load_explicit(&keep_parts, memory_order_relaxed);
}

static void slot_free(struct stats_of_thread *slot)
{
    for (unsigned i = 0; i < STATS_HISTS; i++)
        histogram_fini(&slot->hists[i]);
    for (unsigned i = 0; i < BATCH_CHAINS; i++) {
        struct batch *b = atomic_load_explicit(&slot->batches[i], memory_order_relaxed);
        while (b) {
            struct batch *next = b->next;
            mem_free(b);
            b = next;
        }
    }
    mem_free(slot);
}

void stats_free(struct stats *s)
{
    if (!s)
        return;
    for (unsigned i = 0; i < THREAD_SLOTS; i++) {
        struct stats_of_thread *slot = atomic_load_explicit(&s->slots[i], memory_order_acquire);
        if (slot)
            slot_free(slot);
    }
    response_stats_free(atomic_load_explicit(&s->responses, memory_order_acquire));
    mem_free(s);
}

struct response_stats *stats_responses(struct stats *s, bool make)
{
    struct response_stats *there = atomic_load_explicit(&s->responses, memory_order_acquire);
    if (there || !make)
        return there;
    struct response_stats *fresh = response_stats_new();
    if (atomic_compare_exchange_strong_explicit(&s->responses, &there, fresh, memory_order_acq_rel,
                                                memory_order_acquire))
        return fresh;
    response_stats_free(fresh);
    return there;
}

/* -- recording -- */

static struct stats_of_thread *add_slot(struct stats *s, unsigned index)
{
    struct stats_of_thread *fresh = MEM_NEW(struct stats_of_thread);
    struct stats_of_thread *there = NULL;
    if (atomic_compare_exchange_strong_explicit(&s->slots[index], &there, fresh,
                                                memory_order_acq_rel, memory_order_acquire))
        return fresh;
    mem_free(fresh);
    return there;
}

static struct stats_of_thread *stats_my_slot(struct stats *s)
{
    unsigned index = thread_slot();
    struct stats_of_thread *slot = atomic_load_explicit(&s->slots[index], memory_order_acquire);
    return slot ? slot : add_slot(s, index);
}

/* Skips the atomic addition if n is 0, which is common (a backend without an input phase) and
 * cheaper. */
static void stats_add(stats_counter *c, uint64_t n)
{
    if (n)
        atomic_fetch_add_explicit(c, n, memory_order_relaxed);
}

/* 0 for times in the wrong order, and for a span that no request can have: so that what a backend
 * makes up lets no sum wrap. */
static uint64_t span(time_ns from, time_ns to)
{
    return from != 0 && to > from && to - from < OTHER_CLOCK ? to - from : 0;
}

void stats_success(struct stats *s, time_ns request_start, time_ns queue_start,
                   const struct stats_compute *c, time_ns now, uint32_t batch_size)
{
    struct stats_of_thread *slot = stats_my_slot(s);
    uint64_t request_ns = span(request_start, now);
    uint64_t queue_ns = span(queue_start, c->start);
    uint64_t input_ns = span(c->start, c->input_end);
    uint64_t infer_ns = span(c->input_end, c->output_start);
    uint64_t output_ns = span(c->output_start, c->end);
    stats_add(&slot->success, 1);
    if (batch_size > 1)
        stats_add(&slot->more_rows, batch_size - 1);
    stats_add(&slot->request_ns, request_ns);
    stats_add(&slot->queue_ns, queue_ns);
    stats_add(&slot->input_ns, input_ns);
    stats_add(&slot->infer_ns, infer_ns);
    stats_add(&slot->output_ns, output_ns);
    histogram_record(&slot->hists[STATS_HIST_REQUEST], request_ns);
    histogram_record(&slot->hists[STATS_HIST_QUEUE], queue_ns);
    histogram_record(&slot->hists[STATS_HIST_COMPUTE], span(c->start, c->end));
    if (!parts_kept())
        return;
    histogram_record(&slot->hists[STATS_HIST_INPUT], input_ns);
    histogram_record(&slot->hists[STATS_HIST_INFER], infer_ns);
    histogram_record(&slot->hists[STATS_HIST_OUTPUT], output_ns);
}

void stats_failure(struct stats *s, enum stats_reason reason, time_ns request_start, time_ns now)
{
    struct stats_of_thread *slot = stats_my_slot(s);
    stats_add(&slot->failures[reason < STATS_REASONS ? reason : STATS_OTHER], 1);
    stats_add(&slot->fail_ns, span(request_start, now));
}

static struct batch *find_batch(_Atomic(struct batch *) *chain, uint32_t size)
{
    struct batch *head = atomic_load_explicit(chain, memory_order_acquire);
    struct batch *fresh = NULL;
    for (;;) {
        for (struct batch *b = head; b; b = b->next) {
            if (b->size == size) {
                mem_free(fresh);
                return b;
            }
        }
        if (!fresh) {
            fresh = MEM_NEW(struct batch);
            fresh->size = size;
        }
        fresh->next = head;
        if (atomic_compare_exchange_strong_explicit(chain, &head, fresh, memory_order_acq_rel,
                                                    memory_order_acquire))
            return fresh;
    }
}

void stats_batch(struct stats *s, uint32_t batch_size, const struct stats_compute *c,
                 time_ns wall_ns)
{
    struct stats_of_thread *slot = stats_my_slot(s);
    uint32_t size = batch_size ? batch_size : 1;
    struct batch *b = find_batch(&slot->batches[size % BATCH_CHAINS], size);
    stats_add(&slot->executions, 1);
    stats_add(&b->count, 1);
    stats_add(&b->input_ns, span(c->start, c->input_end));
    stats_add(&b->infer_ns, span(c->input_end, c->output_start));
    stats_add(&b->output_ns, span(c->output_start, c->end));
    uint64_t ms = wall_ns / 1000000u;
    if (atomic_load_explicit(&slot->last_ms, memory_order_relaxed) < ms)
        atomic_store_explicit(&slot->last_ms, ms, memory_order_relaxed);
}

time_ns stats_ended(const struct stats *s, const struct stats_compute *c)
{
    return c->end >= s->made && c->end < OTHER_CLOCK ? c->end : clock_now_ns();
}

void stats_cache_hit(struct stats *s, time_ns request_start, time_ns queue_start,
                     time_ns lookup_start, uint64_t hit_ns, time_ns now)
{
    struct stats_of_thread *slot = stats_my_slot(s);
    uint64_t request_ns = span(request_start, now);
    uint64_t queue_ns = span(queue_start, lookup_start);
    stats_add(&slot->hits, 1);
    stats_add(&slot->hit_ns, hit_ns);
    stats_add(&slot->request_ns, request_ns);
    stats_add(&slot->queue_ns, queue_ns);
    histogram_record(&slot->hists[STATS_HIST_REQUEST], request_ns);
    histogram_record(&slot->hists[STATS_HIST_QUEUE], queue_ns);
    if (parts_kept())
        histogram_record(&slot->hists[STATS_HIST_CACHE_HIT], hit_ns);
}

void stats_cache_miss(struct stats *s, uint64_t miss_ns)
{
    struct stats_of_thread *slot = stats_my_slot(s);
    stats_add(&slot->misses, 1);
    stats_add(&slot->miss_ns, miss_ns);
    stats_add(&slot->request_ns, miss_ns);
    if (parts_kept())
        histogram_record(&slot->hists[STATS_HIST_CACHE_MISS], miss_ns);
}

/* -- adding up -- */

static uint64_t get(const stats_counter *c)
{
    return atomic_load_explicit(c, memory_order_relaxed);
}

static void absorb_batches(struct stats_of_thread *into, const struct stats_of_thread *from)
{
    for (unsigned i = 0; i < BATCH_CHAINS; i++) {
        const struct batch *b = atomic_load_explicit(&from->batches[i], memory_order_acquire);
        for (; b; b = b->next) {
            struct batch *mine = find_batch(&into->batches[i], b->size);
            stats_add(&mine->count, get(&b->count));
            stats_add(&mine->input_ns, get(&b->input_ns));
            stats_add(&mine->infer_ns, get(&b->infer_ns));
            stats_add(&mine->output_ns, get(&b->output_ns));
        }
    }
}

static void absorb_slot(struct stats_of_thread *into, const struct stats_of_thread *from)
{
    stats_add(&into->success, get(&from->success));
    stats_add(&into->more_rows, get(&from->more_rows));
    stats_add(&into->request_ns, get(&from->request_ns));
    stats_add(&into->queue_ns, get(&from->queue_ns));
    stats_add(&into->input_ns, get(&from->input_ns));
    stats_add(&into->infer_ns, get(&from->infer_ns));
    stats_add(&into->output_ns, get(&from->output_ns));
    stats_add(&into->executions, get(&from->executions));
    for (unsigned i = 0; i < STATS_HISTS; i++)
        histogram_absorb(&into->hists[i], &from->hists[i]);
    if (get(&into->last_ms) < get(&from->last_ms))
        atomic_store_explicit(&into->last_ms, get(&from->last_ms), memory_order_relaxed);
    for (unsigned i = 0; i < STATS_REASONS; i++)
        stats_add(&into->failures[i], get(&from->failures[i]));
    stats_add(&into->fail_ns, get(&from->fail_ns));
    stats_add(&into->hits, get(&from->hits));
    stats_add(&into->hit_ns, get(&from->hit_ns));
    stats_add(&into->misses, get(&from->misses));
    stats_add(&into->miss_ns, get(&from->miss_ns));
    absorb_batches(into, from);
}

void stats_absorb(struct stats *into, const struct stats *from)
{
    for (unsigned i = 0; i < THREAD_SLOTS; i++) {
        const struct stats_of_thread *slot =
            atomic_load_explicit(&from->slots[i], memory_order_acquire);
        if (slot)
            absorb_slot(stats_my_slot(into), slot);
    }
}

/* -- reading -- */

static void sum_slot(const struct stats_of_thread *slot, struct stats_sums *ret)
{
    uint64_t computed = get(&slot->success);
    uint64_t hits = get(&slot->hits);
    ret->inference_count += computed + get(&slot->more_rows);
    ret->execution_count += get(&slot->executions);
    if (get(&slot->last_ms) > ret->last_inference_ms)
        ret->last_inference_ms = get(&slot->last_ms);
    ret->success.count += computed + hits;
    ret->success.ns += get(&slot->request_ns);
    ret->queue.count += computed + hits;
    ret->queue.ns += get(&slot->queue_ns);
    ret->compute_input.count += computed;
    ret->compute_input.ns += get(&slot->input_ns);
    ret->compute_infer.count += computed;
    ret->compute_infer.ns += get(&slot->infer_ns);
    ret->compute_output.count += computed;
    ret->compute_output.ns += get(&slot->output_ns);
    for (unsigned i = 0; i < STATS_REASONS; i++) {
        uint64_t failed = get(&slot->failures[i]);
        ret->failures[i] += failed;
        ret->fail.count += failed;
    }
    ret->fail.ns += get(&slot->fail_ns);
    ret->cache_hit.count += hits;
    ret->cache_hit.ns += get(&slot->hit_ns);
    ret->cache_miss.count += get(&slot->misses);
    ret->cache_miss.ns += get(&slot->miss_ns);
}

void stats_sum(const struct stats *s, struct stats_sums *ret)
{
    *ret = (struct stats_sums){0};
    for (unsigned i = 0; i < THREAD_SLOTS; i++) {
        const struct stats_of_thread *slot =
            atomic_load_explicit(&s->slots[i], memory_order_acquire);
        if (slot)
            sum_slot(slot, ret);
    }
    ret->request_us = ret->success.ns / 1000;
    ret->queue_us = ret->queue.ns / 1000;
    ret->compute_input_us = ret->compute_input.ns / 1000;
    ret->compute_infer_us = ret->compute_infer.ns / 1000;
    ret->compute_output_us = ret->compute_output.ns / 1000;
}

static uint64_t sum_of(const struct stats_sums *sums, enum stats_hist_kind kind)
{
    switch (kind) {
    case STATS_HIST_REQUEST:
        return sums->success.ns;
    case STATS_HIST_QUEUE:
        return sums->queue.ns;
    case STATS_HIST_INPUT:
        return sums->compute_input.ns;
    case STATS_HIST_INFER:
        return sums->compute_infer.ns;
    case STATS_HIST_OUTPUT:
        return sums->compute_output.ns;
    case STATS_HIST_CACHE_HIT:
        return sums->cache_hit.ns;
    case STATS_HIST_CACHE_MISS:
        return sums->cache_miss.ns;
    case STATS_HIST_COMPUTE:
    case STATS_HISTS:
        break;
    }
    return sums->compute_input.ns + sums->compute_infer.ns + sums->compute_output.ns;
}

void stats_sum_hist(const struct stats *s, enum stats_hist_kind kind, struct histogram_counts *ret,
                    uint64_t *ret_sum_ns)
{
    struct stats_sums sums;
    stats_sum(s, &sums);
    memset(ret, 0, sizeof(*ret));
    for (unsigned i = 0; i < THREAD_SLOTS; i++) {
        const struct stats_of_thread *slot =
            atomic_load_explicit(&s->slots[i], memory_order_acquire);
        if (slot)
            histogram_read(&slot->hists[kind], ret);
    }
    *ret_sum_ns = sum_of(&sums, kind);
}

static int by_size(const void *a, const void *b)
{
    const struct stats_batch_sums *x = a;
    const struct stats_batch_sums *y = b;
    return (x->batch_size > y->batch_size) - (x->batch_size < y->batch_size);
}

static void read_batch(const struct batch *b, struct stats_batch_sums *ret)
{
    uint64_t count = get(&b->count);
    *ret = (struct stats_batch_sums){
        .batch_size = b->size,
        .compute_input = {count, get(&b->input_ns)},
        .compute_infer = {count, get(&b->infer_ns)},
        .compute_output = {count, get(&b->output_ns)},
    };
}

static void merge(struct stats_duration *into, const struct stats_duration *d)
{
    into->count += d->count;
    into->ns += d->ns;
}

/* Sorts the entries and merges those with the same batch size, which come from several slots. */
static size_t fold(struct stats_batch_sums *all, size_t n)
{
    qsort(all, n, sizeof(*all), by_size);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (kept && all[kept - 1].batch_size == all[i].batch_size) {
            merge(&all[kept - 1].compute_input, &all[i].compute_input);
            merge(&all[kept - 1].compute_infer, &all[i].compute_infer);
            merge(&all[kept - 1].compute_output, &all[i].compute_output);
        } else {
            all[kept++] = all[i];
        }
    }
    return kept;
}

size_t stats_sum_batches(const struct stats *s, struct stats_batch_sums **ret)
{
    struct stats_batch_sums *all = NULL;
    size_t n = 0;
    size_t cap = 0;
    for (unsigned i = 0; i < THREAD_SLOTS * BATCH_CHAINS; i++) {
        const struct stats_of_thread *slot =
            atomic_load_explicit(&s->slots[i / BATCH_CHAINS], memory_order_acquire);
        if (!slot)
            continue;
        const struct batch *b =
            atomic_load_explicit(&slot->batches[i % BATCH_CHAINS], memory_order_acquire);
        for (; b; b = b->next) {
            if (n == cap) {
                cap = cap ? cap * 2 : 16;
                all = mem_realloc(all, cap * sizeof(*all));
            }
            read_batch(b, &all[n++]);
        }
    }
    *ret = all;
    return n ? fold(all, n) : 0;
}
