/* Isolated models in a program that embeds the server: the program's allocator gets the outputs,
 * children that the program does not know of do not disturb it, and a model whose process is
 * killed comes back. */
#include "10_inprocess/host.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define COUNT 50000u

static const char config[] =
    "backend: \"identity\"\n"
    "max_batch_size: 0\n"
    "input { name: \"INPUT0\" data_type: TYPE_FP32 dims: [ -1 ] }\n"
    "output { name: \"OUTPUT0\" data_type: TYPE_FP32 dims: [ -1 ] }\n"
    "parameters { key: \"ISOLATION\" value { string_value: \"process\" } }\n";

/* The only child of this process. */
static pid_t only_child(void)
{
    char path[64];
    int other;
    pid_t found = 0;
    /* Each thread has a list of its own. */
    snprintf(path, sizeof(path), "cat /proc/%d/task/*/children", (int)getpid());
    FILE *f = popen(path, "r");
    assert_non_null(f);
    while (fscanf(f, "%d", &other) == 1) {
        char name[64];
        char line[64] = "";
        snprintf(name, sizeof(name), "/proc/%d/comm", other);
        FILE *comm = fopen(name, "r");
        if (comm && fgets(line, sizeof(line), comm) && strncmp(line, "nereid", 6) == 0)
            found = other;
        if (comm)
            fclose(comm);
    }
    pclose(f);
    return found;
}

static void run(TRITONSERVER_Server *s, const float *data, unsigned count)
{
    struct host_call c;
    int64_t shape[1] = {count};
    host_call_make(&c, s, "isolated");
    host_call_input(&c, "INPUT0", shape, 1, data, count);
    host_call_run(&c, s, NULL);
    assert_int_equal(c.finals, 1);
    assert_int_equal(c.releases, 1);
    size_t got;
    HOST_OK(TRITONSERVER_InferenceResponseError(c.responses[0]));
    const float *out = host_output(c.responses[0], 0, &got);
    assert_int_equal(got, count);
    assert_memory_equal(out, data, count * sizeof(*data));
    assert_int_equal(c.allocated, 1);
    host_call_free(&c);
}

/* Until the server has noticed that the model's process ended, and has another one that serves. */
static void wait_for_another(TRITONSERVER_Server *s, pid_t first)
{
    pid_t now = first;
    while (now == first || now == 0)
        now = only_child();
    bool ready = false;
    while (!ready)
        HOST_OK(TRITONSERVER_ServerModelIsReady(s, "isolated", 1, &ready));
}

static void test_isolated(void **state)
{
    (void)state;
    static float data[COUNT];
    for (unsigned i = 0; i < COUNT; i++)
        data[i] = (float)i;
    struct host_repository r;
    host_repository_make(&r);
    host_repository_add(&r, "isolated", config);
    TRITONSERVER_Server *s = host_server(host_options(r.path, "backends"));
    pid_t first = only_child();
    assert_true(first > 0);
    run(s, data, 16);
    run(s, data, COUNT);
    run(s, data, 0);

    assert_int_equal(kill(first, SIGKILL), 0);
    wait_for_another(s, first);
    run(s, data, COUNT);

    HOST_OK(TRITONSERVER_ServerDelete(s));
    assert_int_equal(only_child(), 0);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* nothing was left for us to reap */
    assert_int_equal(errno, ECHILD);
    host_repository_remove(&r);
}

/* A program that reaps whatever child ends takes the status away, no more. */
static void test_a_host_that_reaps_all(void **state)
{
    (void)state;
    static float data[16];
    struct host_repository r;
    host_repository_make(&r);
    host_repository_add(&r, "isolated", config);
    signal(SIGCHLD, SIG_IGN);
    TRITONSERVER_Server *s = host_server(host_options(r.path, "backends"));
    pid_t first = only_child();
    run(s, data, 16);
    assert_int_equal(kill(first, SIGKILL), 0);
    wait_for_another(s, first);
    run(s, data, 16);
    HOST_OK(TRITONSERVER_ServerDelete(s));
    signal(SIGCHLD, SIG_DFL);
    assert_int_equal(only_child(), 0);
    host_repository_remove(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_isolated),
                                       cmocka_unit_test(test_a_host_that_reaps_all)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
