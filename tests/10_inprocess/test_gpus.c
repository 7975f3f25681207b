/* A program with tensors on a GPU, and models there: tests/cuda stands in for the driver, so that
 * touching such a tensor on the host ends the process, and a copy that nobody waits for does not
 * arrive. The program has CUDA's driver open itself, as one with a GPU would. */
#include "10_inprocess/host.h"
#include "nereid/cuda_driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TENSORS(type)                                                    \
    "input [{ name: \"INPUT0\" data_type: TYPE_" type " dims: [-1] }]\n" \
    "output [{ name: \"OUTPUT0\" data_type: TYPE_" type " dims: [-1] }]\n"
#define PAIR(type) "backend: \"identity\"\n" TENSORS(type)
#define PLACES     "backend: \"places\"\n" TENSORS("FP32") ON_CPU
#define ON_CPU     "instance_group [{ count: 1 kind: KIND_CPU }]\n"
#define ON_GPU     "instance_group [{ count: 1 kind: KIND_GPU gpus: [0] }]\n"
#define STEP(model, from, to)                            \
    "{ model_name: \"" model "\" model_version: -1 "     \
    "input_map { key: \"INPUT0\" value: \"" from "\" } " \
    "output_map { key: \"OUTPUT0\" value: \"" to "\" } }"

enum { COUNT = 1000, BYTES = COUNT * sizeof(float) };

static struct cuda_driver cuda;
static void (*plan)(const char *);
static long (*count)(const char *);
static struct cuda_context *context;
static struct host_repository repository, others;
static TRITONSERVER_Server *server, *other; /* the other has the backends of tests */
static float numbers[COUNT];

static void done(int result)
{
    assert_int_equal(result, CUDA_SUCCESS);
}

static void open_cuda(void)
{
    static const struct cuda_driver_symbol symbols[] = CUDA_DRIVER_SYMBOLS;
    void *library = dlopen(CUDA_DRIVER_LIBRARY, RTLD_NOW);
    assert_non_null(library);
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++)
        *(void **)(void *)((char *)&cuda + symbols[i].offset) = dlsym(library, symbols[i].name);
    *(void **)(void *)&plan = dlsym(library, "nereid_standin_plan");
    *(void **)(void *)&count = dlsym(library, "nereid_standin_count");
    setenv("NEREID_CUDA_DEVICES", "8.0:64,7.0:64,5.0:64", 1);
    done(cuda.init(0));
    done(cuda.context_retain(&context, 0));
    done(cuda.context_push(context)); /* the program's own; the server leaves it there */
}

/* Models of tests/10_inprocess/plugins/places.c. */
static void open_other(void)
{
    host_repository_make(&others);
    host_repository_add(&others, "first", PLACES);
    host_repository_add(&others, "second", PLACES);
    host_repository_add(&others, "lazy", PLACES);
    host_repository_add(&others, "copies", PLACES);
    host_repository_add(&others, "both",
                        "platform: \"ensemble\"\n"
                        "input [{ name: \"INPUT0\" data_type: TYPE_FP32 dims: [-1] }]\n"
                        "output [{ name: \"A\" data_type: TYPE_FP32 dims: [-1] },\n"
                        "{ name: \"B\" data_type: TYPE_FP32 dims: [-1] }]\n"
                        "ensemble_scheduling { step [ " STEP("first", "INPUT0", "A") ", " //
                        STEP("second", "INPUT0", "B") " ] }\n");
    host_repository_add(&others, "unwritten",
                        "platform: \"ensemble\"\n" TENSORS("FP32")                       //
                        "ensemble_scheduling { step [ " STEP("lazy", "INPUT0", "a") ", " //
                        STEP("copies", "a", "OUTPUT0") " ] }\n");
    other = host_server(host_options(others.path, "tests/backends"));
}

static int open_server(void **state)
{
    (void)state;
    open_cuda();
    for (size_t i = 0; i < COUNT; i++)
        numbers[i] = (float)i;
    host_repository_make(&repository);
    host_repository_add(&repository, "cpu", PAIR("FP32") ON_CPU);
    host_repository_add(&repository, "gpu", PAIR("FP32") ON_GPU);
    host_repository_add(&repository, "alone",
                        PAIR("FP32") ON_CPU "parameters { key: \"ISOLATION\" value { "
                                            "string_value: \"process\" } }\n");
    host_repository_add(&repository, "text", PAIR("STRING") ON_CPU);
    host_repository_add(&repository, "cuts",
                        "platform: \"ensemble\"\n"
                        "input [{ name: \"INPUT0\" data_type: TYPE_FP32 dims: [-1] }]\n"
                        "output [{ name: \"OUTPUT0\" data_type: TYPE_FP32 dims: [-1] }]\n"
                        "ensemble_scheduling { step [ " STEP("gpu", "INPUT0", "a") ", " //
                        STEP("gpu", "a", "b") ", " STEP("cpu", "b", "c") ", "           //
                        STEP("gpu", "c", "OUTPUT0") " ] }\n");
    TRITONSERVER_ServerOptions *o = host_options(repository.path, "backends");
    HOST_OK(TRITONSERVER_ServerOptionsSetCudaMemoryPoolByteSize(o, 0, 1 << 20));
    server = host_server(o);
    open_other();
    return 0;
}

/* Everything that the server took of the driver is given back; what the program has, stays. */
static int close_server(void **state)
{
    (void)state;
    HOST_OK(TRITONSERVER_ServerDelete(server));
    HOST_OK(TRITONSERVER_ServerDelete(other));
    host_repository_remove(&repository);
    host_repository_remove(&others);
    struct cuda_context *was;
    done(cuda.context_pop(&was));
    assert_ptr_equal(was, context);
    done(cuda.context_release(0));
    static const char *const kinds[] = {"memory", "host",    "stream", "event",
                                        "ipc",    "context", "pushed", "wrong"};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (count(kinds[i])) {
            fprintf(stderr, "left: %ld %s\n", count(kinds[i]), kinds[i]);
            return 1;
        }
    return 0;
}

static void *gpu_get(size_t bytes)
{
    struct cuda_context *was;
    cuda_address a;
    done(cuda.context_push(context));
    done(cuda.memory_alloc(&a, bytes));
    done(cuda.context_pop(&was));
    return (void *)(uintptr_t)a;
}

static void gpu_put(void *memory)
{
    struct cuda_context *was;
    done(cuda.context_push(context));
    done(cuda.memory_free((uintptr_t)memory));
    done(cuda.context_pop(&was));
}

static void copy(void *to, const void *from, size_t bytes)
{
    done(cuda.copy((uintptr_t)to, (uintptr_t)from, bytes, NULL));
    done(cuda.stream_sync(NULL));
}

static void *put_on_gpu(const void *from, size_t bytes)
{
    void *p = gpu_get(bytes);
    copy(p, from, bytes);
    return p;
}

static void gpu_input(struct host_call *c, TRITONSERVER_DataType type, int64_t elements,
                      const void *memory, size_t bytes)
{
    HOST_OK(TRITONSERVER_InferenceRequestAddInput(c->request, "INPUT0", type, &elements, 1));
    HOST_OK(TRITONSERVER_InferenceRequestAppendInputData(c->request, "INPUT0", memory, bytes,
                                                         TRITONSERVER_MEMORY_GPU, 0));
}

/* The answer has the numbers, in memory of this kind. */
static void answers(struct host_call *c, TRITONSERVER_MemoryType expected)
{
    const char *name;
    TRITONSERVER_DataType datatype;
    const int64_t *shape;
    uint64_t rank;
    const void *base;
    size_t bytes;
    TRITONSERVER_MemoryType type;
    int64_t id;
    void *userp;
    float back[COUNT];
    assert_int_equal(c->callbacks, 1);
    HOST_OK(TRITONSERVER_InferenceResponseError(c->responses[0]));
    HOST_OK(TRITONSERVER_InferenceResponseOutput(c->responses[0], 0, &name, &datatype, &shape,
                                                 &rank, &base, &bytes, &type, &id, &userp));
    assert_int_equal(type, expected);
    assert_int_equal(id, 0);
    assert_int_equal(bytes, BYTES);
    if (type == TRITONSERVER_MEMORY_GPU)
        copy(back, base, bytes);
    else
        memcpy(back, base, bytes);
    assert_memory_equal(back, numbers, BYTES);
}

static void run(const char *model, bool input_on_gpu, bool output_on_gpu,
                TRITONSERVER_MemoryType expected)
{
    struct host_call c;
    int64_t shape = COUNT;
    host_call_make(&c, server, model);
    c.gpu_get = output_on_gpu ? gpu_get : NULL;
    c.gpu_put = gpu_put;
    void *memory = input_on_gpu ? put_on_gpu(numbers, BYTES) : NULL;
    if (memory)
        gpu_input(&c, TRITONSERVER_TYPE_FP32, COUNT, memory, BYTES);
    else
        host_call_input(&c, "INPUT0", &shape, 1, numbers, COUNT);
    host_call_run(&c, server, NULL);
    answers(&c, expected);
    host_call_free(&c);
    if (memory)
        gpu_put(memory);
}

static void test_a_model_on_the_cpu_gets_the_host(void **state)
{
    (void)state;
    run("cpu", true, false, TRITONSERVER_MEMORY_CPU);
    run("cpu", true, true, TRITONSERVER_MEMORY_CPU); /* it does not ask for a GPU */
}

static void test_a_model_on_a_gpu(void **state)
{
    (void)state;
    long staged = count("cuMemAlloc_v2");
    run("gpu", false, false, TRITONSERVER_MEMORY_CPU);
    assert_true(count("cuMemAlloc_v2") > staged); /* it went through memory of the GPU */
    run("gpu", true, false, TRITONSERVER_MEMORY_CPU);
    run("gpu", false, true, TRITONSERVER_MEMORY_GPU);
    long allocated = count("cuMemAlloc_v2");
    run("gpu", true, true, TRITONSERVER_MEMORY_GPU);
    assert_int_equal(count("cuMemAlloc_v2"), allocated + 2); /* those of this program */
}

/* Its process never sees the GPU. */
static void test_a_model_in_a_process_of_its_own(void **state)
{
    (void)state;
    run("alone", true, false, TRITONSERVER_MEMORY_CPU);
    run("alone", true, true, TRITONSERVER_MEMORY_CPU);
}

static void test_steps_of_an_ensemble(void **state)
{
    (void)state;
    run("cuts", false, false, TRITONSERVER_MEMORY_CPU);
    run("cuts", true, false, TRITONSERVER_MEMORY_CPU);
    run("cuts", true, true, TRITONSERVER_MEMORY_CPU); /* an answer begins on the host */
}

/* Each step has a copy of its own of what it reads by a host policy: the request that it belongs to
 * keeps it, and steps end at different times. */
static void test_steps_that_read_by_policy(void **state)
{
    (void)state;
    struct host_call c;
    void *memory = put_on_gpu(numbers, BYTES);
    host_call_make(&c, other, "both");
    gpu_input(&c, TRITONSERVER_TYPE_FP32, COUNT, memory, BYTES);
    HOST_OK(TRITONSERVER_InferenceRequestAppendInputDataWithHostPolicy(
        c.request, "INPUT0", memory, BYTES, TRITONSERVER_MEMORY_GPU, 0, "cpu"));
    host_call_run(&c, other, NULL);
    HOST_OK(TRITONSERVER_InferenceResponseError(c.responses[0]));
    for (uint32_t i = 0; i < 2; i++) {
        size_t got;
        const float *output = host_output(c.responses[0], i, &got);
        assert_int_equal(got, COUNT);
        assert_memory_equal(output, numbers, BYTES);
    }
    host_call_free(&c);
    gpu_put(memory);
}

/* What a backend leaves unwritten is cleared, not what somebody had there before. */
static void test_an_output_that_nobody_wrote(void **state)
{
    (void)state;
    static const float zeros[COUNT];
    struct host_call c;
    int64_t shape = COUNT;
    size_t got;
    host_call_make(&c, other, "unwritten");
    host_call_input(&c, "INPUT0", &shape, 1, numbers, COUNT);
    host_call_run(&c, other, NULL);
    HOST_OK(TRITONSERVER_InferenceResponseError(c.responses[0]));
    const float *output = host_output(c.responses[0], 0, &got);
    assert_int_equal(got, COUNT);
    assert_memory_equal(output, zeros, BYTES);
    host_call_free(&c);
}

/* Lengths of strings are checked, wherever they lie. */
static void test_strings(void **state)
{
    (void)state;
    struct host_call c;
    static const char text[] = "\2\0\0\0ab\1\0\0\0c";
    static const char bad[] = "\2\0\0\0ab\7\0\0\0c";
    host_call_make(&c, server, "text");
    void *memory = put_on_gpu(text, sizeof(text) - 1);
    gpu_input(&c, TRITONSERVER_TYPE_BYTES, 2, memory, sizeof(text) - 1);
    host_call_run(&c, server, NULL);
    HOST_OK(TRITONSERVER_InferenceResponseError(c.responses[0]));
    host_call_forget(&c);
    copy(memory, bad, sizeof(bad) - 1);
    HOST_FAILS(TRITONSERVER_ServerInferAsync(server, c.request, NULL),
               TRITONSERVER_ERROR_INVALID_ARG, "the last string");
    host_call_free(&c);
    gpu_put(memory);
}

static void fails(const char *model, const char *failing, const char *part)
{
    struct host_call c;
    void *memory = put_on_gpu(numbers, BYTES);
    host_call_make(&c, server, model);
    gpu_input(&c, TRITONSERVER_TYPE_FP32, COUNT, memory, BYTES);
    plan(failing);
    host_call_run(&c, server, NULL);
    plan("");
    TRITONSERVER_Error *e = TRITONSERVER_InferenceResponseError(c.responses[0]);
    assert_non_null(e);
    if (!strstr(TRITONSERVER_ErrorMessage(e), part))
        fprintf(stderr, "%s: %s\n", failing, TRITONSERVER_ErrorMessage(e));
    assert_non_null(strstr(TRITONSERVER_ErrorMessage(e), part));
    host_call_free(&c);
    gpu_put(memory);
    run(model, true, false, TRITONSERVER_MEMORY_CPU); /* the next is served */
}

/* What fails fails one request, with CUDA's words. */
static void test_a_gpu_that_fails(void **state)
{
    (void)state;
    fails("cpu", "cuMemcpyAsync:1=700", "copying 4000 bytes by GPU 0: CUDA says unknown (700)");
    fails("cpu", "cuStreamSynchronize:1=700", "copying 4000 bytes by GPU 0");
    fails("cpu", "cuCtxPushCurrent_v2:1=201",
          "entering GPU 0: CUDA says CUDA_ERROR_INVALID_CONTEXT");
    fails("gpu", "cuMemcpyAsync:1=700", "GPU 0: cuMemcpyAsync failed: unknown (700)");
    fails("gpu", "cuStreamSynchronize:1=700", "GPU 0: cuStreamSynchronize failed");
    fails("gpu", "cuCtxPushCurrent_v2:1=201", "CUDA_ERROR_INVALID_CONTEXT");
}

/* The pool of 1 MiB is too small for what is to be staged: an error, and a smaller one is served. */
static void test_a_pool_that_is_spent(void **state)
{
    (void)state;
    struct host_call c;
    enum { MANY = 1 << 20 };
    float *many = calloc(MANY, sizeof(*many));
    int64_t shape = MANY;
    host_call_make(&c, server, "gpu");
    host_call_input(&c, "INPUT0", &shape, 1, many, MANY);
    host_call_run(&c, server, NULL);
    TRITONSERVER_Error *e = TRITONSERVER_InferenceResponseError(c.responses[0]);
    assert_int_equal(TRITONSERVER_ErrorCode(e), TRITONSERVER_ERROR_UNAVAILABLE);
    assert_non_null(strstr(TRITONSERVER_ErrorMessage(e), "--cuda-memory-pool-byte-size=0:<bytes>"));
    host_call_free(&c);
    free(many);
    run("gpu", false, false, TRITONSERVER_MEMORY_CPU);
}

static TRITONSERVER_Server *one_more_server(void)
{
    TRITONSERVER_ServerOptions *o = host_options(repository.path, "backends");
    HOST_OK(TRITONSERVER_ServerOptionsSetModelControlMode(o, TRITONSERVER_MODEL_CONTROL_EXPLICIT));
    TRITONSERVER_Server *more = host_server(o);
    HOST_OK(TRITONSERVER_ServerLoadModel(more, "gpu"));
    return more;
}

/* Servers of a program share a backend's library, and what it keeps for the next that opens a
 * GPU: none of that ends with the server that it was made for. */
static void test_one_server_ends_before_another(void **state)
{
    (void)state;
    TRITONSERVER_Server *usual = server;
    for (int i = 0; i < 5; i++) {
        TRITONSERVER_Server *first = one_more_server();
        HOST_OK(TRITONSERVER_ServerUnloadModel(first, "gpu"));
        server = one_more_server();
        HOST_OK(TRITONSERVER_ServerDelete(first));
        run("gpu", false, false, TRITONSERVER_MEMORY_CPU);
        HOST_OK(TRITONSERVER_ServerDelete(server));
    }
    server = usual;
    run("gpu", false, false, TRITONSERVER_MEMORY_CPU);
}

static void test_inputs_on_no_gpu(void **state)
{
    (void)state;
    struct host_call c;
    int64_t shape = 1;
    float number = 1;
    host_call_make(&c, server, "cpu");
    HOST_OK(TRITONSERVER_InferenceRequestAddInput(c.request, "INPUT0", TRITONSERVER_TYPE_FP32,
                                                  &shape, 1));
    HOST_FAILS(TRITONSERVER_InferenceRequestAppendInputData(c.request, "INPUT0", &number, 4,
                                                            TRITONSERVER_MEMORY_GPU, 3),
               TRITONSERVER_ERROR_UNSUPPORTED, "GPU 3, which is not there");
    host_call_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_model_on_the_cpu_gets_the_host),
        cmocka_unit_test(test_a_model_on_a_gpu),
        cmocka_unit_test(test_a_model_in_a_process_of_its_own),
        cmocka_unit_test(test_steps_of_an_ensemble),
        cmocka_unit_test(test_steps_that_read_by_policy),
        cmocka_unit_test(test_an_output_that_nobody_wrote),
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_a_gpu_that_fails),
        cmocka_unit_test(test_a_pool_that_is_spent),
        cmocka_unit_test(test_one_server_ends_before_another),
        cmocka_unit_test(test_inputs_on_no_gpu),
    };
    return cmocka_run_group_tests(tests, open_server, close_server);
}
