#include "watch.h"

#include "timed.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How far a job is. The server's thread may leave it while it RUNS. */
enum watch_phase { WATCH_RUNS, WATCH_ANSWERS, WATCH_LEFT, WATCH_DONE };

struct watch_job {
    struct function *function;
    TRITONBACKEND_ModelInstance *instance;
    TRITONBACKEND_Request **requests; /* a copy */
    uint32_t count;
    enum watch_phase phase;
    bool told; /* who was left behind: its requests have their error */
};

/* One thread, with a job at a time. Owned by its watch; by itself once it was left behind. */
struct watch_thread {
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    struct watch_job *job;
    bool quit;
    pthread_t id;
};

struct watch {
    struct watch_thread *thread; /* NULL = not started */
};

static void watch_job_free(struct watch_job *job)
{
    free(job->requests);
    free(job);
}

/* Asked when the function has returned: its requests are answered by who comes first. */
static bool watch_may_answer(void *arg)
{
    struct watch_thread *t = arg;
    pthread_mutex_lock(&t->lock);
    bool mine = t->job->phase == WATCH_RUNS;
    if (mine)
        t->job->phase = WATCH_ANSWERS;
    pthread_mutex_unlock(&t->lock);
    return mine;
}

/* Asked before the requests are released: who was left behind waits until they have their error. */
static void watch_before_release(void *arg)
{
    struct watch_thread *t = arg;
    pthread_mutex_lock(&t->lock);
    while (t->job->phase == WATCH_LEFT && !t->job->told)
        pthread_cond_wait(&t->changed, &t->lock);
    pthread_mutex_unlock(&t->lock);
}

static void watch_execute(struct watch_thread *t, struct watch_job *job)
{
    struct execution x = {.function = job->function,
                          .instance = job->instance,
                          .requests = job->requests,
                          .count = job->count,
                          .may_answer = watch_may_answer,
                          .before_release = watch_before_release,
                          .arg = t};
    execute_batch(&x);
}

static void watch_thread_free(struct watch_thread *t)
{
    pthread_cond_destroy(&t->changed);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

/* Waits for a job; NULL = there is none to come. */
static struct watch_job *watch_next(struct watch_thread *t)
{
    pthread_mutex_lock(&t->lock);
    while (!t->quit && (!t->job || t->job->phase == WATCH_DONE))
        pthread_cond_wait(&t->changed, &t->lock);
    struct watch_job *job = t->quit ? NULL : t->job;
    pthread_mutex_unlock(&t->lock);
    return job;
}

static void *watch_main(void *arg)
{
    struct watch_thread *t = arg;
    struct watch_job *job;
    pthread_setname_np(pthread_self(), "function");
    while ((job = watch_next(t)) != NULL) {
        struct function *f = job->function;
        function_ref(f); /* the requests keep the model; they go first */
        watch_execute(t, job);
        pthread_mutex_lock(&t->lock);
        bool left = job->phase == WATCH_LEFT;
        job->phase = WATCH_DONE;
        pthread_cond_broadcast(&t->changed);
        pthread_mutex_unlock(&t->lock);
        if (left) {
            watch_job_free(job);
            watch_thread_free(t);
            function_returned(f);
        }
        function_unref(f);
        if (left)
            break;
    }
    return NULL;
}

/* Starts a thread that gets no signals: they are the program's. */
static struct watch_thread *watch_start(void)
{
    struct watch_thread *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    timed_init(&t->changed);
    pthread_mutex_init(&t->lock, NULL);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&t->id, NULL, watch_main, t);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc == 0)
        return t;
    watch_thread_free(t);
    return NULL;
}

struct watch *watch_new(void)
{
    return calloc(1, sizeof(struct watch));
}

void watch_free(struct watch *w)
{
    if (w && w->thread) {
        struct watch_thread *t = w->thread;
        pthread_mutex_lock(&t->lock);
        t->quit = true;
        pthread_cond_broadcast(&t->changed);
        pthread_mutex_unlock(&t->lock);
        pthread_join(t->id, NULL);
        watch_thread_free(t);
    }
    free(w);
}

static struct watch_job *watch_job_new(struct function *f, TRITONBACKEND_ModelInstance *instance,
                                       TRITONBACKEND_Request **requests, uint32_t count)
{
    struct watch_job *job = calloc(1, sizeof *job);
    if (!job)
        return NULL;
    *job = (struct watch_job){.function = f, .instance = instance, .count = count};
    job->requests = calloc(count, sizeof(TRITONBACKEND_Request *));
    if (!job->requests) {
        free(job);
        return NULL;
    }
    memcpy(job->requests, requests, count * sizeof(TRITONBACKEND_Request *));
    return job;
}

/* Waits until the job is done, or its time is over while it runs: then it is left behind.
 * returns  whether it is done */
static bool watch_wait(struct watch_thread *t, struct watch_job *job, uint64_t ns)
{
    struct timespec until = timed_after(ns);
    while (job->phase == WATCH_RUNS && pthread_cond_timedwait(&t->changed, &t->lock, &until) == 0)
        continue;
    while (job->phase == WATCH_ANSWERS)
        pthread_cond_wait(&t->changed, &t->lock);
    if (job->phase == WATCH_RUNS)
        job->phase = WATCH_LEFT;
    return job->phase == WATCH_DONE;
}

/* Answers all requests of an execution with an error. */
static void watch_refuse(TRITONBACKEND_ModelInstance *instance, TRITONBACKEND_Request **requests,
                         uint32_t count, const char *message)
{
    TRITONSERVER_Error *e = TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNAVAILABLE, message);
    for (uint32_t i = 0; i < count; i++)
        execute_refuse(instance, requests[i], e);
    TRITONSERVER_ErrorDelete(e);
}

/* The time of a job is over: its thread is on its own from here on. */
static void watch_leave(struct watch *w, const struct watch_job *job)
{
    struct watch_thread *t = w->thread;
    char message[512];
    snprintf(message, sizeof message, "function '%s' has not returned within %g s",
             job->function->name, (double)job->function->timeout_ns / 1e9);
    function_left(job->function);
    pthread_detach(t->id);
    w->thread = NULL;
    watch_refuse(job->instance, job->requests, job->count, message);
    pthread_mutex_lock(&t->lock);
    t->job->told = true;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
}

/* What stands against an execution; NULL = nothing. */
static const char *watch_hindrance(struct watch *w, struct function *f, char *text, size_t room)
{
    if (function_count_left(f) >= WATCH_MOST_LEFT) {
        snprintf(text, room,
                 "function '%s' hangs: %d calls have not returned, no more are made until one does",
                 f->name, WATCH_MOST_LEFT);
        return text;
    }
    if (!w->thread)
        w->thread = watch_start();
    return w->thread ? NULL : "no thread could be started for the function";
}

void watch_run(struct watch *w, struct function *f, TRITONBACKEND_ModelInstance *instance,
               TRITONBACKEND_Request **requests, uint32_t count)
{
    char text[512];
    const char *hindrance = watch_hindrance(w, f, text, sizeof text);
    struct watch_job *job = hindrance ? NULL : watch_job_new(f, instance, requests, count);
    if (!job) {
        watch_refuse(instance, requests, count, hindrance ? hindrance : "out of memory");
        for (uint32_t i = 0; i < count; i++)
            TRITONSERVER_ErrorDelete(
                TRITONBACKEND_RequestRelease(requests[i], TRITONSERVER_REQUEST_RELEASE_ALL));
        return;
    }
    struct watch_thread *t = w->thread;
    pthread_mutex_lock(&t->lock);
    t->job = job;
    pthread_cond_broadcast(&t->changed);
    bool done = watch_wait(t, job, f->timeout_ns);
    if (done)
        t->job = NULL;
    pthread_mutex_unlock(&t->lock);
    if (done)
        watch_job_free(job);
    else
        watch_leave(w, job);
}
