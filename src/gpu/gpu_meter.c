#include "gpu/gpu_meter.h"

#include "base/log.h"
#include "base/mem.h"
#include "gpu/gpu_priv.h"
#include "gpu/nvml.h"
#include "os/mutex.h"
#include "os/thread.h"

#include <inttypes.h>
#include <string.h>

/* Readings older than so many intervals and so long (patience) are not told. */
#define STALE_INTERVALS 3u

static struct mutex lock = MUTEX_INIT(MUTEX_RANK_LEAF); /* guards everything in `meter` */
static struct {
    time_ns interval;            /* 0 = nobody wants readings */
    const struct gpu_list *gpus; /* NULL = none was found */
    struct rounds *rounds;       /* NULL = there is no thread */
    struct gpu_meter_reading readings[GPU_MAX];
    size_t count;
    time_ns read_at; /* the readings */
} meter;
static struct gpu_meter_patience patience = {.end = TIME_S(1), .stale = TIME_S(2)};

struct metered {
    const struct gpu_device *device; /* of the rounds */
    struct nvml_device *handle;
    uint64_t energy_mj;        /* so far */
    unsigned long long energy; /* as NVML counts it, at the last reading; 0 = there was none */
    unsigned told;             /* bits of questions of which the log says that nothing answers */
};

/* What a thread has. Whoever comes last frees it: gpu_meter_close, which waits for the thread, or
 * the thread itself, if a call of NVML did not answer and it was left behind. */
struct rounds {
    struct thread *thread;
    bool stop; /* like the next three, guarded by `lock` */
    bool ended;
    bool left;
    struct mutex_cond changed; /* one of the three */
    /* the rest belongs to the thread */
    struct gpu_list list;
    struct nvml calls;
    struct metered gpus[GPU_MAX];
    size_t count;
    struct gpu_meter_reading readings[GPU_MAX];
};

static int ask_utilization(const struct nvml *c, struct metered *m, struct gpu_meter_reading *r)
{
    struct nvml_utilization u;
    int rc = c->utilization(m->handle, &u);
    if (!rc && u.gpu <= 100) /* what is more is no measurement */
        r->busy_ppm = u.gpu * UINT64_C(10000);
    return rc;
}

static int ask_memory(const struct nvml *c, struct metered *m, struct gpu_meter_reading *r)
{
    struct nvml_memory memory = {.version = NVML_MEMORY_VERSION};
    int rc = c->memory(m->handle, &memory);
    if (rc)
        return rc;
    r->total_bytes = memory.total;
    r->used_bytes = memory.used;
    return NVML_SUCCESS;
}

static int ask_power(const struct nvml *c, struct metered *m, struct gpu_meter_reading *r)
{
    unsigned mw;
    int rc = c->power(m->handle, &mw);
    if (!rc)
        r->power_mw = mw;
    return rc;
}

static int ask_power_limit(const struct nvml *c, struct metered *m, struct gpu_meter_reading *r)
{
    unsigned mw;
    int rc = c->power_limit(m->handle, &mw);
    if (!rc)
        r->limit_mw = mw;
    return rc;
}

/* NVML's count begins again when its driver is loaded again. */
static int ask_energy(const struct nvml *c, struct metered *m, struct gpu_meter_reading *r)
{
    unsigned long long now;
    int rc = c->energy(m->handle, &now);
    if (rc)
        return rc;
    if (m->energy && now > m->energy)
        m->energy_mj += now - m->energy;
    m->energy = now;
    r->energy_mj = m->energy_mj;
    return NVML_SUCCESS;
}

static const struct {
    const char *what;
    int (*ask)(const struct nvml *c, struct metered *m, struct gpu_meter_reading *r);
} questions[] = {{"utilization", ask_utilization},
                 {"memory", ask_memory},
                 {"power usage", ask_power},
                 {"power limit", ask_power_limit},
                 {"energy consumption", ask_energy}};

static bool is_metering(const struct rounds *r)
{
    mutex_lock(&lock);
    bool stop = r->stop;
    mutex_unlock(&lock);
    return !stop;
}

/* A value that is not told now is asked for again the next time; the log says so once. */
static void read_gpu(const struct rounds *all, struct metered *m, struct gpu_meter_reading *r)
{
    const struct nvml *c = &all->calls;
    memset(r, 0xFF, sizeof(*r)); /* GPU_METER_UNKNOWN */
    memcpy(r->uuid, m->device->uuid, sizeof(r->uuid));
    for (unsigned i = 0; i < sizeof(questions) / sizeof(questions[0]) && is_metering(all); i++) {
        int rc = questions[i].ask(c, m, r);
        if (!rc || (m->told & (1u << i)))
            continue;
        m->told |= 1u << i;
        LOG_WARN("GPU %" PRId32 " does not tell its %s, which is not among the metrics while "
                 "that is so: NVML says %s (%d)",
                 m->device->id, questions[i].what, c->error_text(rc), rc);
    }
}

static void find_gpus(struct rounds *r)
{
    for (size_t i = 0; i < r->list.usable_count && is_metering(r); i++) {
        const struct gpu_device *d = &r->list.devices[r->list.usable[i]];
        struct nvml_device *handle;
        int rc = r->calls.find(d->uuid, &handle);
        if (rc)
            LOG_WARN("there are no metrics of GPU %" PRId32 " (%s): NVML says %s (%d)", d->id,
                     d->uuid, r->calls.error_text(rc), rc);
        else
            r->gpus[r->count++] = (struct metered){.device = d, .handle = handle};
    }
}

/* Returns false once it is to stop. What was read is kept only before that: it may be in part. */
static bool publish_and_wait(struct rounds *r)
{
    mutex_lock(&lock);
    if (!r->stop) {
        memcpy(meter.readings, r->readings, r->count * sizeof(*r->readings));
        meter.count = r->count;
        meter.read_at = clock_now_ns();
    }
    time_ns from = clock_now_ns();
    while (!r->stop && clock_now_ns() < time_later(from, meter.interval))
        mutex_cond_wait_until(&r->changed, &lock, time_later(from, meter.interval));
    bool stop = r->stop;
    mutex_unlock(&lock);
    return !stop;
}

static void go_round(struct rounds *r)
{
    do {
        for (size_t i = 0; i < r->count; i++)
            read_gpu(r, &r->gpus[i], &r->readings[i]);
    } while (publish_and_wait(r));
}

/* The library stays open, as the driver's does. */
static struct err *open_nvml(struct nvml *c)
{
    static const struct cuda_driver_symbol symbols[] = NVML_SYMBOLS;
    struct dl *library;
    struct err *e =
        gpu_open_library(NVML_LIBRARY, symbols, sizeof(symbols) / sizeof(symbols[0]), c, &library);
    int rc = e ? NVML_SUCCESS : c->init();
    if (rc)
        e = err_new(STATUS_UNAVAILABLE, "NVML says %s (%d)", c->error_text(rc), rc);
    return e;
}

/* NULL is fine. */
static void tell_absence(struct err *e)
{
    if (e)
        LOG_WARN("there are no metrics of GPUs: %s", err_message(e));
    err_free(e);
}

static bool was_left(const struct rounds *r)
{
    mutex_lock(&lock);
    bool left = r->left;
    mutex_unlock(&lock);
    return left;
}

/* Once it is left behind, the process may be at its end, and NVML too: it is let be. */
static void meter_main(void *arg)
{
    struct rounds *r = arg;
    struct err *e = open_nvml(&r->calls);
    if (!e) {
        find_gpus(r);
        if (r->count)
            go_round(r);
        if (!was_left(r))
            r->calls.shutdown();
    }
    tell_absence(e);
    mutex_lock(&lock);
    r->ended = true;
    mutex_cond_broadcast(&r->changed);
    bool left = r->left;
    mutex_unlock(&lock);
    if (left) {
        thread_leave(r->thread);
        mem_free(r);
    }
}

/* Under the lock. */
static struct err *start_if_wanted(void)
{
    if (!meter.interval || !meter.gpus || meter.rounds)
        return NULL;
    struct rounds *r = MEM_NEW(struct rounds);
    r->list = *meter.gpus;
    struct err *e = thread_start("gpu-meter", meter_main, r, &r->thread);
    if (e)
        mem_free(r);
    else
        meter.rounds = r;
    return e;
}

void gpu_meter_want(time_ns interval)
{
    mutex_lock(&lock);
    meter.interval = interval > GPU_METER_LEAST ? interval : GPU_METER_LEAST;
    if (meter.rounds) /* it sleeps for as long as was wanted before */
        mutex_cond_broadcast(&meter.rounds->changed);
    struct err *e = start_if_wanted();
    mutex_unlock(&lock);
    tell_absence(e);
}

void gpu_meter_found(const struct gpu_list *gpus)
{
    mutex_lock(&lock);
    meter.gpus = gpus;
    struct err *e = start_if_wanted();
    mutex_unlock(&lock);
    tell_absence(e);
}

void gpu_meter_be_patient(struct gpu_meter_patience p)
{
    mutex_lock(&lock);
    patience = p;
    mutex_unlock(&lock);
}

/* Returns true if its thread has ended, or is about to. Else it is the thread's from now on. */
static bool ends_in_time(struct rounds *r)
{
    mutex_lock(&lock);
    r->stop = true;
    mutex_cond_broadcast(&r->changed);
    time_ns until = time_later(clock_now_ns(), patience.end);
    while (!r->ended && clock_now_ns() < until)
        mutex_cond_wait_until(&r->changed, &lock, until);
    bool ended = r->ended;
    r->left = !ended;
    mutex_unlock(&lock);
    return ended;
}

void gpu_meter_close(void)
{
    mutex_lock(&lock);
    struct rounds *r = meter.rounds;
    memset(&meter, 0, sizeof(meter));
    mutex_unlock(&lock);
    if (!r)
        return;
    if (!ends_in_time(r)) {
        LOG_WARN("NVML does not answer: the thread that reads metrics of GPUs is left behind");
        return;
    }
    thread_join(r->thread);
    mem_free(r);
}

size_t gpu_meter_read(struct gpu_meter_reading ret[GPU_MAX])
{
    mutex_lock(&lock);
    time_ns end = time_later(meter.read_at, patience.stale);
    for (unsigned i = 0; i < STALE_INTERVALS; i++)
        end = time_later(end, meter.interval);
    size_t count = clock_now_ns() < end ? meter.count : 0;
    memcpy(ret, meter.readings, count * sizeof(*ret));
    mutex_unlock(&lock);
    return count;
}
