#include "standin.h"
#include "plan.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PLAN_BYTES  1024
#define WRONG_BYTES 4096

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#define STANDIN_NAME(member, symbol, parameters) #symbol,
static const char *const names[STANDIN_CALLS] = {CUDA_DRIVER_CALLS(STANDIN_NAME)};
static const char *const kinds[STANDIN_KINDS] = {"memory", "host",    "stream", "event",
                                                 "graph",  "context", "ipc",    "pushed"};

static long calls[STANDIN_CALLS];
static long live[STANDIN_KINDS];
static long wrong_count;
static char wrong[WRONG_BYTES]; /* JSON strings, parted by commas */
static char plan[PLAN_BYTES];
static bool planned;

static void load_plan(void)
{
    const char *text = getenv("NEREID_CUDA_FAIL");
    if (!planned && text)
        snprintf(plan, sizeof(plan), "%s", text);
    planned = true;
}

/* Other threads may call meanwhile. */
static void wait_at_gate(const char *name, long n)
{
    const char *gate = plan_gate(getenv("NEREID_CUDA_GATE"), name, n);
    if (!gate)
        return;
    pthread_mutex_unlock(&lock);
    plan_wait(gate);
    pthread_mutex_lock(&lock);
}

int standin_begin(enum standin_call call)
{
    pthread_mutex_lock(&lock);
    load_plan();
    long n = ++calls[call];
    wait_at_gate(names[call], n);
    int result = plan_result(plan, names[call], n);
    if (result)
        pthread_mutex_unlock(&lock);
    return result;
}

int standin_end(int result)
{
    pthread_mutex_unlock(&lock);
    return result;
}

void standin_live(enum standin_kind kind, int change)
{
    live[kind] += change;
}

int standin_wrong(int result, const char *fmt, ...)
{
    char text[256];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    fprintf(stderr, "stand-in of CUDA: %s\n", text);
    size_t len = strlen(wrong);
    snprintf(wrong + len, sizeof(wrong) - len, "%s\"%s\"", wrong_count++ ? "," : "", text);
    return result;
}

void nereid_standin_plan(const char *text)
{
    pthread_mutex_lock(&lock);
    snprintf(plan, sizeof(plan), "%s", text);
    planned = true;
    memset(calls, 0, sizeof(calls));
    pthread_mutex_unlock(&lock);
}

long nereid_standin_count(const char *what)
{
    long count = -1;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < STANDIN_KINDS; i++)
        if (strcmp(what, kinds[i]) == 0)
            count = live[i];
    for (int i = 0; i < STANDIN_CALLS; i++)
        if (strcmp(what, names[i]) == 0)
            count = calls[i];
    if (strcmp(what, "wrong") == 0)
        count = wrong_count;
    pthread_mutex_unlock(&lock);
    return count;
}

__attribute__((destructor)) static void write_report(void)
{
    const char *path = getenv("NEREID_CUDA_REPORT");
    FILE *f = path ? fopen(path, "a") : NULL;
    if (!f)
        return;
    char line[WRONG_BYTES + 4096];
    size_t len = (size_t)snprintf(line, sizeof(line), "{\"pid\":%d,\"live\":{", (int)getpid());
    for (int i = 0; i < STANDIN_KINDS; i++)
        len += (size_t)snprintf(line + len, sizeof(line) - len, "%s\"%s\":%ld", i ? "," : "",
                                kinds[i], live[i]);
    len += (size_t)snprintf(line + len, sizeof(line) - len, "},\"wrong\":[%s],\"calls\":{", wrong);
    for (int i = 0; i < STANDIN_CALLS; i++)
        len += (size_t)snprintf(line + len, sizeof(line) - len, "%s\"%s\":%ld", i ? "," : "",
                                names[i], calls[i]);
    fprintf(f, "%s}}\n", line);
    fclose(f);
}
