/* A response cache in a program that embeds the server: configured by the C API, hits into the
 * program's own memory. */
#include "10_inprocess/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CACHED                                                         \
    "backend: \"identity\"\n"                                          \
    "input [{ name: \"INPUT0\" data_type: TYPE_FP32 dims: [-1] }]\n"   \
    "output [{ name: \"OUTPUT0\" data_type: TYPE_FP32 dims: [-1] }]\n" \
    "response_cache { enable: true }\n"

static struct host_repository repository;
static const float numbers[4] = {1.5f, -2, 3, 4};

static int make_repository(void **state)
{
    (void)state;
    host_repository_make(&repository);
    host_repository_add(&repository, "cached", CACHED);
    host_repository_add(&repository, "agent",
                        CACHED "model_repository_agents { agents [{ name: \"checksum\" "
                               "parameters { key: \"MD5:1/file\" value: \"0\" } }] }\n");
    return 0;
}

static int remove_repository(void **state)
{
    (void)state;
    host_repository_remove(&repository);
    return 0;
}

static TRITONSERVER_ServerOptions *options(void)
{
    TRITONSERVER_ServerOptions *o = host_options(repository.path, "backends");
    HOST_OK(TRITONSERVER_ServerOptionsSetCacheDirectory(o, TEST_BINARY_DIR "/caches"));
    HOST_OK(TRITONSERVER_ServerOptionsSetRepoAgentDirectory(o, TEST_BINARY_DIR "/repoagents"));
    HOST_OK(TRITONSERVER_ServerOptionsSetModelControlMode(o, TRITONSERVER_MODEL_CONTROL_EXPLICIT));
    HOST_OK(TRITONSERVER_ServerOptionsSetStartupModel(o, "cached"));
    return o;
}

static void expect_answer(TRITONSERVER_Server *server)
{
    struct host_call c;
    size_t count;
    host_call_make(&c, server, "cached");
    host_call_input(&c, "INPUT0", (int64_t[]){4}, 1, numbers, 4);
    host_call_run(&c, server, NULL);
    assert_memory_equal(host_output(c.responses[0], 0, &count), numbers, sizeof(numbers));
    assert_int_equal(count, 4);
    assert_int_equal(c.allocated, 1);
    assert_int_equal(c.started, 1);
    host_call_free(&c);
}

static void expect_hits(TRITONSERVER_Server *server, unsigned hits)
{
    TRITONSERVER_Message *m;
    char wanted[64];
    HOST_OK(TRITONSERVER_ServerModelStatistics(server, "cached", -1, &m));
    char *text = host_text(m);
    snprintf(wanted, sizeof(wanted), "\"cache_hit\":{\"count\":%u,", hits);
    assert_non_null(strstr(text, wanted));
    free(text);
}

/* A number in the JSON, and a member that is no string: the cache gets the object as it is. */
static void test_answers_from_the_cache(void **state)
{
    (void)state;
    TRITONSERVER_ServerOptions *o = options();
    HOST_OK(TRITONSERVER_ServerOptionsSetCacheConfig(o, "local",
                                                     "{\"size\": 100000, \"more\": {\"a\": [1]}}"));
    TRITONSERVER_Server *server = host_server(o);
    for (unsigned i = 0; i < 5; i++) {
        expect_answer(server);
        expect_hits(server, i);
    }
    HOST_OK(TRITONSERVER_ServerDelete(server));
}

/* Two servers, each with a cache of its own. */
static void test_two_servers(void **state)
{
    (void)state;
    TRITONSERVER_Server *servers[2];
    for (int i = 0; i < 2; i++) {
        TRITONSERVER_ServerOptions *o = options();
        HOST_OK(TRITONSERVER_ServerOptionsSetResponseCacheByteSize(o, 100000));
        servers[i] = host_server(o);
    }
    expect_answer(servers[0]);
    expect_answer(servers[1]);
    expect_hits(servers[1], 0);
    HOST_OK(TRITONSERVER_ServerDelete(servers[0]));
    expect_answer(servers[1]);
    expect_hits(servers[1], 1);
    HOST_OK(TRITONSERVER_ServerDelete(servers[1]));
}

static void expect_no_server(TRITONSERVER_ServerOptions *o, TRITONSERVER_Error_Code code,
                             const char *words)
{
    TRITONSERVER_Server *server;
    HOST_FAILS(TRITONSERVER_ServerNew(&server, o), code, words);
    HOST_OK(TRITONSERVER_ServerOptionsDelete(o));
}

static void test_mistakes(void **state)
{
    (void)state;
    TRITONSERVER_ServerOptions *o = options();
    HOST_FAILS(TRITONSERVER_ServerOptionsSetCacheConfig(o, "local", "{\"size\": 1"),
               TRITONSERVER_ERROR_INVALID_ARG, "JSON object");
    HOST_FAILS(TRITONSERVER_ServerOptionsSetCacheConfig(o, "local", "[1]"),
               TRITONSERVER_ERROR_INVALID_ARG, "JSON object");
    HOST_OK(TRITONSERVER_ServerOptionsSetResponseCacheByteSize(o, 0)); /* no cache */
    HOST_OK(TRITONSERVER_ServerOptionsSetCacheConfig(o, "local", "{\"size\": \"few\"}"));
    expect_no_server(o, TRITONSERVER_ERROR_INVALID_ARG, "cache 'local': ");
    o = options();
    HOST_OK(TRITONSERVER_ServerOptionsSetCacheConfig(o, "local", "{\"size\": 1}"));
    HOST_OK(TRITONSERVER_ServerOptionsSetCacheConfig(o, "other", "{}"));
    expect_no_server(o, TRITONSERVER_ERROR_INVALID_ARG, "found multiple cache configurations");
    o = options();
    HOST_OK(TRITONSERVER_ServerOptionsSetCacheConfig(o, "nobody", "{}"));
    expect_no_server(o, TRITONSERVER_ERROR_INVALID_ARG,
                     "unable to find 'libtritoncache_nobody.so' for cache");
}

static void test_an_agent_refuses(void **state)
{
    (void)state;
    TRITONSERVER_Server *server = host_server(options());
    HOST_FAILS(TRITONSERVER_ServerLoadModel(server, "agent"), TRITONSERVER_ERROR_INTERNAL,
               "repository agent 'checksum': failed to open text file for read 1/file");
    expect_answer(server);
    HOST_OK(TRITONSERVER_ServerDelete(server));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers_from_the_cache),
        cmocka_unit_test(test_two_servers),
        cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_an_agent_refuses),
    };
    return cmocka_run_group_tests(tests, make_repository, remove_repository);
}
