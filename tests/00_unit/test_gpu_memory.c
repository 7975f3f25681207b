/* Memory of GPUs and copies, with the stand-in of tests/cuda in the driver's place. */
#include "base/buf.h"
#include "base/mem.h"
#include "gpu/gpu.h"
#include "gpu/gpu_copy.h"
#include "gpu/gpu_memory.h"
#include "gpu/gpu_pool.h"
#include "nereid/cuda_driver.h"
#include "os/dl.h"
#include "plugin/memory_manager.h"
#include "support/unit.h"

#include "base/budget.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)

static void (*plan)(const char *);
static long (*count)(const char *);

static int find_standin(void **state)
{
    (void)state;
    struct dl *library;
    struct dl_function wanted[] = {{"nereid_standin_plan", &plan},
                                   {"nereid_standin_count", &count}};
    unit_succeeds(dl_open(CUDA_DRIVER_LIBRARY, &library));
    assert_int_equal(dl_functions(library, wanted, 2), 2);
    return 0;
}

static int begin(void **state)
{
    (void)state;
    setenv("NEREID_CUDA_DEVICES", "8.0:64,8.0:64", 1);
    plan("");
    gpu_open(GPU_CAPABILITY);
    return 0;
}

/* Whatever a test did, nothing is left of it once the last server has ended. */
static int end(void **state)
{
    (void)state;
    gpu_close();
    static const char *const kinds[] = {"memory",  "host",   "stream", "event",
                                        "context", "pushed", "wrong"};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (count(kinds[i]))
            print_error("left: %ld %s\n", count(kinds[i]), kinds[i]);
        assert_int_equal(count(kinds[i]), 0);
    }
    return 0;
}

/* -- the pool, which touches nothing -- */

static void *number(uintptr_t n)
{
    return (void *)(n * GPU_POOL_LEAST);
}

static void test_sizes(void **state)
{
    (void)state;
    assert_int_equal(gpu_pool_size(0), 512);
    assert_int_equal(gpu_pool_size(512), 512);
    assert_int_equal(gpu_pool_size(513), 768);
    assert_int_equal(gpu_pool_size(769), 1024);
    assert_int_equal(gpu_pool_size(64 * MIB), 64 * MIB);
    assert_int_equal(gpu_pool_size(64 * MIB + 1), 96 * MIB);
    assert_int_equal(gpu_pool_size(UINT64_MAX), 0);
    uint64_t seed = 1;
    for (int i = 0; i < 10000; i++) {
        uint64_t bytes = unit_random(&seed) >> 30;
        uint64_t size = gpu_pool_size(bytes);
        assert_true(size >= bytes && (bytes < 512 || size <= bytes + bytes / 2));
        assert_int_equal(gpu_pool_size(size), size);
    }
}

static void test_pool_keeps(void **state)
{
    (void)state;
    struct gpu_pool p = {.limit = 4096};
    assert_null(gpu_pool_take(&p, 1024));
    assert_true(gpu_pool_reserve(&p, 1024));
    gpu_pool_add(&p, number(1), 1024);
    assert_false(gpu_pool_reserve(&p, 4096)); /* what is handed out cannot be dropped */
    assert_true(gpu_pool_give(&p, number(1)));
    assert_false(gpu_pool_give(&p, number(1)));
    assert_null(gpu_pool_take(&p, 512));
    assert_ptr_equal(gpu_pool_take(&p, 1024), number(1));
    assert_int_equal(p.used, 1024);
    assert_true(gpu_pool_give(&p, number(1)));
    assert_true(gpu_pool_reserve(&p, 4096)); /* the kept block has to go */
    assert_true(p.held > p.limit);
    assert_ptr_equal(gpu_pool_drop(&p), number(1));
    assert_null(gpu_pool_drop(&p));
    gpu_pool_unreserve(&p, 4096);
    assert_int_equal(p.held, 0);
    assert_int_equal(p.used, 0);
}

/* Several ask at once: what is being made counts, for who asks for a new block and for who takes a
 * kept one. */
static void test_pool_counts_what_is_being_made(void **state)
{
    (void)state;
    struct gpu_pool p = {.limit = 4096};
    assert_true(gpu_pool_reserve(&p, 3072));
    assert_false(gpu_pool_reserve(&p, 2048));
    assert_true(gpu_pool_reserve(&p, 1024));
    assert_false(gpu_pool_reserve(&p, 512));
    assert_int_equal(p.held, 4096);
    gpu_pool_unreserve(&p, 1024);
    gpu_pool_add(&p, number(1), 3072);
    assert_int_equal(p.used, 3072);
    assert_int_equal(p.making, 0);
    assert_true(gpu_pool_reserve(&p, 1024));
    gpu_pool_unreserve(&p, 1024);
    assert_true(gpu_pool_give(&p, number(1)));
    assert_true(gpu_pool_reserve(&p, 2048)); /* the kept block has to go, so nobody gets it */
    assert_null(gpu_pool_take(&p, 3072));
    assert_ptr_equal(gpu_pool_drop(&p), number(1));
    assert_int_equal(p.held, 2048);
    gpu_pool_unreserve(&p, 2048);
    assert_int_equal(p.held, 0);
}

/* Against a list: whatever is asked for and given back, sums and addresses stay right. */
static void test_pool_at_random(void **state)
{
    (void)state;
    struct gpu_pool p = {.limit = 64 * KIB};
    struct {
        void *block;
        uint64_t size;
    } out[64] = {{0}};
    uint64_t seed = 7, used = 0;
    uintptr_t next = 1;
    for (int i = 0; i < 20000; i++) {
        size_t at = unit_random(&seed) % 64;
        if (out[at].block) {
            assert_true(gpu_pool_give(&p, out[at].block));
            used -= out[at].size;
            out[at].block = NULL;
        } else {
            uint64_t size = gpu_pool_size(unit_random(&seed) % (8 * KIB));
            void *block = gpu_pool_take(&p, size);
            if (!block && gpu_pool_reserve(&p, size)) {
                while (p.held > p.limit)
                    assert_non_null(gpu_pool_drop(&p));
                block = number(next++);
                gpu_pool_add(&p, block, size);
            }
            for (size_t k = 0; block && k < 64; k++)
                assert_ptr_not_equal(block, out[k].block);
            assert_true(block || used + size > p.limit);
            out[at].block = block;
            out[at].size = size;
            used += block ? size : 0;
        }
        assert_int_equal(p.used, used);
        assert_true(p.used <= p.held && p.held <= p.limit);
    }
    while (gpu_pool_lose(&p) || gpu_pool_drop(&p))
        continue;
    assert_int_equal(p.held, 0);
}

/* -- memory -- */

static void test_memory_is_kept(void **state)
{
    (void)state;
    void *a, *b;
    unit_succeeds(gpu_memory_alloc(1, 1000, &a));
    unit_succeeds(gpu_memory_free(1, a));
    unit_succeeds(gpu_memory_alloc(1, 1024, &b));
    assert_ptr_equal(a, b);
    assert_int_equal(count("cuMemAlloc_v2"), 1);
    unit_fails(gpu_memory_free(0, b), STATUS_INVALID_ARG, "memory of GPU 0 to be freed");
    unit_fails(gpu_memory_free(1, &a), STATUS_INVALID_ARG, "memory of GPU 1 to be freed");
    unit_succeeds(gpu_memory_free(1, b));
    unit_fails(gpu_memory_free(1, b), STATUS_INVALID_ARG, "was not allocated");
    unit_fails(gpu_memory_alloc(2, 1, &a), STATUS_UNSUPPORTED, "there is no GPU 2");
}

static void test_limits(void **state)
{
    (void)state;
    void *a, *b;
    gpu_memory_limit(0, 1 * MIB);
    unit_succeeds(gpu_memory_alloc(0, 768 * KIB, &a));
    unit_fails(gpu_memory_alloc(0, 512 * KIB, &b), STATUS_UNAVAILABLE,
               "its pool has 1048576 bytes, of which 786432 are in use; "
               "--cuda-memory-pool-byte-size=0:<bytes>");
    unit_fails(gpu_memory_alloc(0, 500 * KIB, &b), STATUS_UNAVAILABLE,
               "no 512000 bytes, which take a block of 524288, on GPU 0: its pool has 1048576");
    unit_fails(gpu_memory_alloc(0, UINT64_MAX, &b), STATUS_UNAVAILABLE,
               "no 18446744073709551615 bytes on GPU 0: its pool has 1048576");
    unit_succeeds(gpu_memory_alloc(1, 512 * KIB, &b)); /* another GPU has a pool of its own */
    unit_succeeds(gpu_memory_free(0, a));
    unit_succeeds(gpu_memory_alloc(0, 512 * KIB, &a)); /* the kept block makes room */
    assert_int_equal(count("cuMemFree_v2"), 1);
    gpu_memory_limit(1, 0);
    unit_fails(gpu_memory_alloc(1, 1, &b), STATUS_UNAVAILABLE, "its pool has 0 bytes");
}

/* The device is full before the pool is: what the pool keeps goes first. */
static void test_full_device(void **state)
{
    (void)state;
    void *a, *b, *c;
    unit_succeeds(gpu_memory_alloc(0, 32 * MIB, &a));
    unit_succeeds(gpu_memory_free(0, a));
    gpu_memory_limit(0, 512 * MIB);
    unit_succeeds(gpu_memory_alloc(0, 48 * MIB, &b));
    assert_int_equal(count("memory"), 1);
    unit_fails(gpu_memory_alloc(0, 32 * MIB, &c), STATUS_UNAVAILABLE, "CUDA_ERROR_OUT_OF_MEMORY");
    unit_succeeds(gpu_memory_free(0, b));
    unit_succeeds(gpu_memory_alloc(0, 64 * MIB, &c));
}

static void test_share_for_loads(void **state)
{
    (void)state;
    void *a;
    assert_true(gpu_memory_allows(0));
    gpu_memory_limit_loads(0, 0.25);
    gpu_memory_limit_loads(99, 0.25);
    assert_true(gpu_memory_allows(0));
    unit_succeeds(gpu_memory_alloc(0, 16 * MIB, &a));
    assert_true(gpu_memory_allows(0));
    unit_succeeds(gpu_memory_alloc(0, 1, &a));
    assert_false(gpu_memory_allows(0));
    assert_true(gpu_memory_allows(1));
    gpu_memory_limit_loads(1, 0);
    assert_true(gpu_memory_allows(1)); /* nothing is in use */
}

static void test_pinned(void **state)
{
    (void)state;
    uint64_t pool, used;
    gpu_memory_pinned_pool(&pool, &used);
    assert_int_equal(pool, 0);
    gpu_memory_limit_pinned(1 * MIB);
    char *p = gpu_memory_pinned(1000);
    assert_non_null(p);
    memset(p, 1, 1000);
    gpu_memory_pinned_pool(&pool, &used);
    assert_int_equal(pool, 1 * MIB);
    assert_int_equal(used, 1024);
    assert_null(gpu_memory_pinned(2 * MIB));
    gpu_memory_unpin(p);
    gpu_memory_pinned_pool(&pool, &used);
    assert_int_equal(used, 0);
}

static void test_buffers(void **state)
{
    (void)state;
    struct buf *b;
    unit_succeeds(gpu_memory_buf(1, 100, &b));
    assert_int_equal(b->memory, BUF_MEMORY_GPU);
    assert_int_equal(b->device, 1);
    assert_int_equal(b->size, 100);
    buf_unref(b);
    unit_succeeds(gpu_memory_buf(1, 100, &b)); /* this one outlives the server */
    gpu_close();
    buf_unref(b);
    gpu_open(GPU_CAPABILITY);
}

/* -- the memory manager of the C ABI -- */

static void test_manager(void **state)
{
    (void)state;
    size_t before = budget_in_use();
    void *gpu, *pinned;
    unit_succeeds(memory_manager_alloc(BUF_MEMORY_GPU, 1, 3000, &gpu));
    assert_int_equal(budget_in_use(), before); /* the budget is of the host */
    unit_fails(memory_manager_free(gpu, BUF_MEMORY_GPU, 0), STATUS_INVALID_ARG, "GPU 0");
    unit_succeeds(memory_manager_free(gpu, BUF_MEMORY_GPU, 1));
    unit_succeeds(memory_manager_free(NULL, BUF_MEMORY_GPU, 1));
    unit_succeeds(memory_manager_alloc(BUF_MEMORY_CPU_PINNED, 0, 3000, &pinned));
    assert_int_equal((uintptr_t)pinned % 64, 0);
    assert_int_equal(count("host"), 1);
    assert_true(budget_in_use() >= before + 3000);
    unit_fails(memory_manager_free(pinned, BUF_MEMORY_CPU, 0), STATUS_INVALID_ARG, "type 0");
    unit_succeeds(memory_manager_free(pinned, BUF_MEMORY_CPU_PINNED, 0));
    assert_int_equal(budget_in_use(), before);
}

/* Where pinned memory is spent, ordinary memory does; the budget bounds both. */
static void test_manager_without_room(void **state)
{
    (void)state;
    void *p;
    size_t before = budget_in_use();
    gpu_memory_limit_pinned(1 * MIB);
    unit_succeeds(memory_manager_alloc(BUF_MEMORY_CPU_PINNED, 0, 2 * MIB, &p));
    assert_int_equal(count("host"), 0);
    memset(p, 1, 2 * MIB);
    unit_succeeds(memory_manager_free(p, BUF_MEMORY_CPU_PINNED, 0));
    budget_set_limit(before + 1000);
    unit_fails(memory_manager_alloc(BUF_MEMORY_CPU_PINNED, 0, 3000, &p), STATUS_UNAVAILABLE, "3");
    budget_set_limit(SIZE_MAX);
    assert_int_equal(budget_in_use(), before);
    unit_fails(memory_manager_alloc((enum buf_memory)7, 0, 1, &p), STATUS_UNSUPPORTED, "type 7");
}

/* -- copies -- */

static struct gpu_copy_place on_gpu(void *data, int64_t device)
{
    return (struct gpu_copy_place){.data = data, .memory = BUF_MEMORY_GPU, .device = device};
}

/* From the host over both GPUs and back: the stand-in copies only what is waited for. */
static void test_copies(void **state)
{
    (void)state;
    char from[300], back[300];
    void *first, *second;
    for (size_t i = 0; i < sizeof(from); i++)
        from[i] = (char)i;
    unit_succeeds(gpu_memory_alloc(0, sizeof(from), &first));
    unit_succeeds(gpu_memory_alloc(1, sizeof(from), &second));
    unit_succeeds(gpu_copy(on_gpu(first, 0), gpu_copy_host(from), sizeof(from)));
    unit_succeeds(gpu_copy(on_gpu(second, 1), on_gpu(first, 0), sizeof(from)));
    unit_succeeds(gpu_copy(gpu_copy_host(back), on_gpu(second, 1), sizeof(from)));
    assert_memory_equal(from, back, sizeof(from));
    unit_succeeds(gpu_copy(gpu_copy_host(back + 1), gpu_copy_host(from), 10));
    assert_memory_equal(from, back + 1, 10);
    unit_succeeds(gpu_copy(on_gpu(first, 9), gpu_copy_host(from), 0)); /* nothing to do */
    unit_fails(gpu_copy(on_gpu(first, 9), gpu_copy_host(from), 1), STATUS_INVALID_ARG, "GPU 9");
    assert_int_equal(count("cuStreamCreate"), 2); /* one stream for each GPU serves them all */
}

static void test_zeros(void **state)
{
    (void)state;
    char back[300];
    static const char expected[300];
    void *p;
    unit_succeeds(gpu_memory_alloc(1, sizeof(back), &p));
    unit_succeeds(gpu_copy_zeros(1, p, 200));
    unit_succeeds(gpu_copy(gpu_copy_host(back), on_gpu(p, 1), sizeof(back)));
    assert_memory_equal(back, expected, 200);
    assert_int_equal((unsigned char)back[200], 0xa5); /* as the stand-in had it */
    unit_succeeds(gpu_copy_zeros(9, p, 0));
    plan("cuMemsetD8Async:1=700");
    unit_fails(gpu_copy_zeros(1, p, 200), STATUS_INTERNAL,
               "clearing 200 bytes by GPU 1: CUDA says unknown (700)");
}

static void test_failing_copies(void **state)
{
    (void)state;
    char byte = 1;
    void *p;
    unit_succeeds(gpu_memory_alloc(0, 1, &p));
    plan("cuStreamCreate:1=2,cuMemcpyAsync:1=700,cuStreamSynchronize:2=700");
    unit_fails(gpu_copy(on_gpu(p, 0), gpu_copy_host(&byte), 1), STATUS_UNAVAILABLE,
               "a stream of GPU 0");
    unit_fails(gpu_copy(on_gpu(p, 0), gpu_copy_host(&byte), 1), STATUS_INTERNAL,
               "copying 1 bytes by GPU 0: CUDA says unknown (700)");
    assert_int_equal(count("cuStreamSynchronize"), 1); /* it is waited all the same */
    unit_fails(gpu_copy(on_gpu(p, 0), gpu_copy_host(&byte), 1), STATUS_INTERNAL, "(700)");
    assert_int_equal(count("stream"), 0); /* a stream that failed is not used again */
    unit_succeeds(gpu_copy(on_gpu(p, 0), gpu_copy_host(&byte), 1));
}

/* Whatever call of the driver fails, it is an error and nothing stays behind. */
static void test_every_call_fails(void **state)
{
    (void)state;
    static const char *const calls[] = {
        "cuDevicePrimaryCtxRetain", "cuCtxPushCurrent_v2", "cuMemAlloc_v2",
        "cuStreamCreate",           "cuMemcpyAsync",       "cuStreamSynchronize"};
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        gpu_close(); /* so that contexts are made anew */
        gpu_open(GPU_CAPABILITY);
        char text[64], byte = 1;
        void *p = NULL;
        snprintf(text, sizeof(text), "%s:1+=999", calls[i]);
        gpu_look();
        plan(text);
        struct err *e = gpu_memory_alloc(0, 8, &p);
        if (!e)
            e = gpu_copy(on_gpu(p, 0), gpu_copy_host(&byte), 1);
        unit_fails(e, STATUS_INTERNAL, "(999)");
        plan("");
    }
}

int main(void)
{
#define HERE(test) cmocka_unit_test_setup_teardown(test, begin, end)
    const struct CMUnitTest tests[] = {
        UNIT(test_sizes),
        UNIT(test_pool_keeps),
        UNIT(test_pool_counts_what_is_being_made),
        UNIT(test_pool_at_random),
        HERE(test_memory_is_kept),
        HERE(test_limits),
        HERE(test_full_device),
        HERE(test_share_for_loads),
        HERE(test_pinned),
        HERE(test_buffers),
        HERE(test_manager),
        HERE(test_manager_without_room),
        HERE(test_copies),
        HERE(test_zeros),
        HERE(test_failing_copies),
        HERE(test_every_call_fails),
    };
    return cmocka_run_group_tests(tests, find_standin, NULL);
}
