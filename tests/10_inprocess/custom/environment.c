/* A custom backend whose threads set variables of the process, read them and start processes, all
 * at the same time, as the runtimes of several models do while they are loaded. It answers with
 * the first INT32 of its input, if all went well. */
#include "triton/core/custom.h"

#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OK, BAD_INPUT, BAD_OUTPUT, BAD_READ, BAD_START, BAD_THREAD };

#define WRITERS   2
#define VARIABLES 3000
#define STARTS    50

static atomic_int left; /* threads that still set variables */
static atomic_int worst;

static void *set_variables(void *arg)
{
    char name[64];
    for (int i = 0; i < VARIABLES; i++) {
        snprintf(name, sizeof(name), "NEREID_TEST_%s_%d", (const char *)arg, i);
        setenv(name, "some", 1);
    }
    left--;
    return NULL;
}

static void *read_variables(void *arg)
{
    (void)arg;
    while (left > 0)
        if (!getenv("PATH"))
            worst = BAD_READ;
    return NULL;
}

/* Read as exec does, but one entry at a time, which a thread sanitizer knows to be right. */
static char **copy_variables(char **copy, size_t room)
{
    char **all = __atomic_load_n(&environ, __ATOMIC_ACQUIRE);
    size_t count = 0;
    while (count < room - 1 && (copy[count] = __atomic_load_n(&all[count], __ATOMIC_ACQUIRE)))
        count++;
    copy[count] = NULL;
    return copy;
}

static void *start_processes(void *arg)
{
    (void)arg;
    static char *copy[2 * WRITERS * VARIABLES];
    static char program[] = "true", *argv[] = {program, NULL};
    for (int i = 0; i < STARTS; i++) {
        pid_t pid;
        if (posix_spawnp(&pid, "true", NULL, NULL, argv,
                         copy_variables(copy, 2 * WRITERS * VARIABLES)) != 0)
            worst = BAD_START;
        else
            waitpid(pid, NULL, 0);
    }
    return NULL;
}

static void all_at_once(void)
{
    static char first[] = "A", second[] = "B";
    static const struct {
        void *(*run)(void *arg);
        void *arg;
    } works[] = {{set_variables, first},
                 {set_variables, second},
                 {read_variables, NULL},
                 {start_processes, NULL}};
    enum { COUNT = sizeof(works) / sizeof(works[0]) };
    pthread_t threads[COUNT];
    int started = 0;
    left = WRITERS;
    while (started < COUNT &&
           pthread_create(&threads[started], NULL, works[started].run, works[started].arg) == 0)
        started++;
    if (started < COUNT) {
        worst = BAD_THREAD;
        left = 0;
    }
    while (started > 0)
        pthread_join(threads[--started], NULL);
}

int CustomInitialize(const CustomInitializeData *data, void **custom_context)
{
    (void)data;
    *custom_context = NULL;
    return OK;
}

int CustomFinalize(void *custom_context)
{
    (void)custom_context;
    return OK;
}

const char *CustomErrorString(void *custom_context, int errcode)
{
    (void)custom_context;
    static const char *const texts[] = {"fine",
                                        "bad input",
                                        "no output",
                                        "a variable was not found",
                                        "no process was started",
                                        "no thread was started"};
    return errcode >= 0 && errcode < (int)(sizeof(texts) / sizeof(texts[0])) ? texts[errcode]
                                                                             : "unknown";
}

int CustomExecute(void *custom_context, uint32_t payload_cnt, CustomPayload *payloads,
                  CustomGetNextInputFn_t input_fn, CustomGetOutputFn_t output_fn)
{
    (void)custom_context;
    for (uint32_t i = 0; i < payload_cnt; i++) {
        CustomPayload *payload = &payloads[i];
        const void *content;
        uint64_t size = sizeof(int32_t);
        if (!input_fn(payload->input_context, payload->input_names[0], &content, &size) ||
            !content || size != sizeof(int32_t)) {
            payload->error_code = BAD_INPUT;
            continue;
        }
        all_at_once();
        int64_t shape = 1;
        void *space = NULL;
        if (!output_fn(payload->output_context, payload->required_output_names[0], 1, &shape, size,
                       &space) ||
            !space)
            payload->error_code = BAD_OUTPUT;
        else
            memcpy(space, content, size);
        if (worst)
            payload->error_code = worst;
    }
    return OK;
}
