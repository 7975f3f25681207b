/* regions: names, bounds, users and the most that there may be; what is lent to requests. */
#include "regions/regions.h"

#include "infer/request.h"
#include "infer/response.h"
#include "model/config.h"
#include "nereid/cuda_driver.h"
#include "os/shm_guard.h"
#include "regions/region.h"
#include "regions/regions_lend.h"
#include "support/test_version.h"
#include "support/unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define BYTES ((size_t)8192)
#define MOST  (4 * BYTES)

static const char strings_config[] =
    "name: 'm' backend: 'b' input [{ name: 'i' data_type: TYPE_STRING dims: [ -1 ] }] "
    "output [{ name: 'o' data_type: TYPE_STRING dims: [ -1 ] }]";

static const struct cuda_ipc_handle no_handle;
static char key[64];
static int memory = -1;
static struct regions *all;

static int begin(void **state)
{
    (void)state;
    snprintf(key, sizeof(key), "/nereid-unit-%d", (int)getpid());
    memory = shm_open(key, O_RDWR | O_CREAT | O_EXCL, 0600);
    all = regions_new(true, MOST);
    return memory < 0 || ftruncate(memory, BYTES) != 0;
}

static int end(void **state)
{
    (void)state;
    regions_free(all);
    close(memory);
    return shm_unlink(key);
}

static struct regions_name named(const char *text)
{
    return (struct regions_name){text, strlen(text)};
}

static void put(const char *name)
{
    unit_succeeds(regions_register(all, named(name), key, 0, BYTES));
}

static void drop_all(void)
{
    unit_succeeds(regions_unregister(all, REGION_SYSTEM, named("")));
    assert_int_equal(region_mapped_bytes(), 0);
}

/* The names, one after the other. */
static void assert_names(const char *want)
{
    char got[256] = "";
    struct region **list;
    size_t count;
    unit_succeeds(regions_list(all, REGION_SYSTEM, named(""), &list, &count));
    for (size_t i = 0; i < count; i++) {
        size_t len = strlen(got);
        snprintf(got + len, sizeof(got) - len, "%s ", list[i]->name);
    }
    regions_list_free(list, count);
    assert_string_equal(got, want);
}

static void names_are_in_order(void **state)
{
    (void)state;
    struct region **list;
    size_t count;
    put("b");
    put("c");
    put("a");
    put("bb");
    assert_names("a b bb c ");
    unit_fails(regions_register(all, named("bb"), key, 0, 1), STATUS_ALREADY_EXISTS,
               "'bb' already");
    unit_succeeds(regions_unregister(all, REGION_SYSTEM, named("b")));
    unit_succeeds(regions_unregister(all, REGION_SYSTEM, named("nobody")));
    assert_names("a bb c ");
    unit_fails(regions_list(all, REGION_SYSTEM, named("b"), &list, &count), STATUS_NOT_FOUND,
               "region: 'b'");
    unit_fails(regions_list(all, REGION_CUDA, named("a"), &list, &count), STATUS_NOT_FOUND,
               "as system shared memory");
    unit_fails(regions_list(all, REGION_CUDA, named("b"), &list, &count), STATUS_NOT_FOUND,
               "cuda shared memory");
    unit_fails(regions_register_cuda(all, named("a"), &no_handle, 0, 1), STATUS_ALREADY_EXISTS,
               "'a' already");
    unit_fails(regions_register_cuda(all, named("b"), &no_handle, 0, 1), STATUS_INVALID_ARG,
               "invalid args");
    drop_all();
}

static void names_are_bounded(void **state)
{
    (void)state;
    char name[REGION_MAX_NAME + 1];
    memset(name, 'x', sizeof(name));
    struct regions_name longest = {name, REGION_MAX_NAME};
    struct regions_name longer = {name, REGION_MAX_NAME + 1};
    struct regions_name hidden = {"a\0b", 3};
    unit_succeeds(regions_register(all, longest, key, 0, 1));
    unit_fails(regions_register(all, longer, key, 0, 1), STATUS_INVALID_ARG, "at most 1024 bytes");
    unit_fails(regions_register(all, hidden, key, 0, 1), STATUS_INVALID_ARG, "no zero byte");
    drop_all();
}

/* The list of all regions is text for everybody. */
static void names_and_keys_are_text(void **state)
{
    (void)state;
    static const char *const wrong[] = {"\xff\xfe", "a\xc0\x80", "\xed\xa0\x80", "\xc3"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        unit_fails(regions_register(all, named(wrong[i]), key, 0, 1), STATUS_INVALID_ARG,
                   "is UTF-8");
        unit_fails(regions_register(all, named("r"), wrong[i], 0, 1), STATUS_INVALID_ARG,
                   "its key is not UTF-8");
    }
    assert_names("");
    put("\xc3\xa4");
    assert_names("\xc3\xa4 ");
    drop_all();
}

static void off_is_off(void **state)
{
    (void)state;
    struct regions *off = regions_new(false, MOST);
    const char *words = "--allow-client-shm=true";
    struct region *r;
    uint8_t *data;
    unit_fails(regions_register(off, named("r"), key, 0, 1), STATUS_UNSUPPORTED, words);
    unit_fails(regions_register_cuda(off, named("r"), &no_handle, 0, 1), STATUS_UNSUPPORTED, words);
    unit_fails(regions_unregister(off, REGION_SYSTEM, named("")), STATUS_UNSUPPORTED, words);
    unit_fails(regions_unregister(off, REGION_CUDA, named("")), STATUS_UNSUPPORTED, words);
    unit_fails(regions_use(off, named("r"), 0, 1, &r, &data), STATUS_NOT_FOUND, "'r'");
    regions_free(off);
}

static void bounds(void **state)
{
    (void)state;
    static const uint64_t outside[][2] = {
        {0, BYTES + 1},         {BYTES, 1},      {UINT64_MAX, 1}, {UINT64_MAX, 2},
        {UINT64_MAX - 4095, 1}, {1, UINT64_MAX},
    };
    for (size_t i = 0; i < sizeof(outside) / sizeof(*outside); i++)
        unit_fails(regions_register(all, named("r"), key, outside[i][0], outside[i][1]),
                   STATUS_INVALID_ARG, "'r': invalid args");
    unit_fails(regions_register(all, named("r"), key, 0, 0), STATUS_INVALID_ARG, "address space");
    unit_fails(regions_register(all, named("r"), key, 1, 8), STATUS_INVALID_ARG, "address space");
    assert_int_equal(region_mapped_bytes(), 0);
    unit_succeeds(regions_register(all, named("r"), key, 4096, 100));
    static const struct {
        uint64_t offset, size;
        const char *words; /* NULL = it is within */
    } parts[] = {
        {0, 100, NULL},
        {99, 1, NULL},
        {100, 1, "offset for"},
        {UINT64_MAX, 1, "offset for"},
        {0, 101, "byte size"},
        {0, 0, "byte size"},
        {99, 2, "byte size"},
        {99, UINT64_MAX, "byte size"},
        {1, UINT64_MAX, "byte size"},
    };
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
        struct region *r = NULL;
        uint8_t *data = NULL;
        struct err *e = regions_use(all, named("r"), parts[i].offset, parts[i].size, &r, &data);
        if (parts[i].words) {
            unit_fails(e, STATUS_INVALID_ARG, parts[i].words);
            continue;
        }
        unit_succeeds(e);
        assert_ptr_equal(data, r->base + parts[i].offset);
        regions_unuse(r);
        region_unref(r);
    }
    drop_all();
}

static void what_may_be_opened(void **state)
{
    (void)state;
    static const char *const none[] = {"", "/", ".", "..", "/a/b", "/../etc/passwd", "nobody"};
    for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++)
        unit_fails(regions_register(all, named("r"), none[i], 0, 1), STATUS_INTERNAL,
                   "Unable to open shared memory region: '");
    unit_fails(regions_register(all, named("r"), "//triton_python_backend_shm_region_1", 0, 1),
               STATUS_INVALID_ARG, "reserved prefix");
    char link[80];
    snprintf(link, sizeof(link), "/dev/shm%s-link", key);
    char target[80];
    snprintf(target, sizeof(target), "/dev/shm%s", key);
    assert_int_equal(symlink(target, link), 0);
    unit_fails(regions_register(all, named("r"), link + 8, 0, 1), STATUS_INTERNAL, "Unable");
    assert_int_equal(unlink(link), 0);
}

/* What a backend has between itself and its processes, whatever its name. */
static void what_the_process_has_mapped_is_not_there(void **state)
{
    (void)state;
    void *mine = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, memory, 0);
    assert_ptr_not_equal(mine, MAP_FAILED);
    unit_fails(regions_register(all, named("r"), key, 0, 1), STATUS_INTERNAL, "Unable to open");
    munmap(mine, BYTES);
    put("r"); /* twice: its own mapping is no such one */
    put("s");
    drop_all();
}

static void a_total_of_bytes(void **state)
{
    (void)state;
    put("a");
    put("b");
    put("c");
    put("d");
    assert_int_equal(region_mapped_bytes(), MOST);
    unit_fails(regions_register(all, named("e"), key, 0, 1), STATUS_UNAVAILABLE,
               "--client-shm-byte-size");
    unit_succeeds(regions_unregister(all, REGION_SYSTEM, named("b")));
    put("e");
    drop_all();
}

static void no_unpin(struct request_target *t)
{
    (void)t;
}

static struct response *delivered;

static void keep(struct response *r, void *owner)
{
    (void)owner;
    delivered = r;
}

static struct request *new_request(struct request_target *t)
{
    *t = (struct request_target){.config = test_version_config(strings_config), .unpin = no_unpin};
    return request_new(t, NULL, keep, NULL);
}

static void a_request_uses_it_until_it_is_answered(void **state)
{
    (void)state;
    struct request_target t;
    struct request *r = new_request(&t);
    struct regions_part in = {named("in"), 0, 16};
    struct regions_part out = {named("out"), 4096, 16};
    struct tensor_piece data;
    put("in");
    put("out");
    unit_succeeds(regions_lend_input(all, r, &in, &data));
    unit_succeeds(regions_lend_output(all, r, &out, "o"));
    assert_true(r->memory_shared);
    unit_fails(regions_unregister(all, REGION_SYSTEM, named("in")), STATUS_INTERNAL,
               "'in', it is currently in use");
    unit_fails(regions_unregister(all, REGION_SYSTEM, named("")), STATUS_INTERNAL,
               "regions: in ,out ,");
    struct response *answer = response_new(r);
    struct tensor_output *o = response_add_output(answer, "o", DATATYPE_BYTES, NULL, 0);
    unit_fails(response_output_memory(answer, o, 17), STATUS_INTERNAL, "(16 bytes)");
    unit_succeeds(response_output_memory_for_backend(answer, o, 16, BUF_MEMORY_GPU, 3));
    assert_true(o->placed && o->memory == BUF_MEMORY_CPU);
    memset(o->data, 'y', 16);
    response_send(answer, RESPONSE_FINAL, NULL);
    regions_lend_settle(delivered);
    assert_null(delivered->error);
    unit_succeeds(regions_unregister(all, REGION_SYSTEM, named("")));
    assert_int_equal(region_mapped_bytes(), 2 * BYTES); /* the request has them still */
    assert_int_equal(*(const char *)data.data, 0);
    char got[17] = "";
    assert_int_equal(pread(memory, got, 16, 4096), 16);
    assert_string_equal(got, "yyyyyyyyyyyyyyyy");
    response_free(delivered);
    request_release(r);
    assert_int_equal(region_mapped_bytes(), 0);
    config_unref((struct model_config *)(uintptr_t)t.config);
}

static void a_request_that_is_given_up_uses_nothing(void **state)
{
    (void)state;
    struct request_target t;
    struct request *r = new_request(&t);
    struct regions_part in = {named("in"), 0, 16};
    struct tensor_piece data;
    put("in");
    unit_succeeds(regions_lend_input(all, r, &in, &data));
    request_release(r);
    drop_all();
    config_unref((struct model_config *)(uintptr_t)t.config);
}

/* Lengths that a client changes after they were checked. */
static void strings_are_read_once(void **state)
{
    (void)state;
    struct request_target t;
    struct request *r = new_request(&t);
    struct regions_part in = {named("in"), 0, 8};
    const int64_t one = 1;
    struct tensor_piece data;
    const uint32_t four = 4;
    put("in");
    assert_int_equal(pwrite(memory, &four, sizeof(four), 0), sizeof(four));
    unit_succeeds(regions_lend_input(all, r, &in, &data));
    request_add_input(r, "i", 1, DATATYPE_BYTES, &one, 1, &data, 1)->shared = true;
    unit_succeeds(request_prepare(r));
    memset((void *)(uintptr_t)data.data, 0xff, 8);
    assert_int_equal(r->inputs[0].piece_count, 1);
    assert_memory_equal(r->inputs[0].pieces[0].data, &four, sizeof(four));
    request_release(r);
    drop_all();
    config_unref((struct model_config *)(uintptr_t)t.config);
}

/* A request that uses a region, and one that comes after it, hear what became of the region. */
static void check_spoilt(off_t bytes_left, enum status code, const char *meanwhile,
                         const char *after)
{
    struct request_target t;
    struct request *r = new_request(&t);
    struct regions_part in = {named("in"), 0, 16};
    struct tensor_piece data;
    put("in");
    unit_succeeds(regions_lend_input(all, r, &in, &data));
    assert_int_equal(ftruncate(memory, bytes_left), 0);
    assert_true(shm_guard_fault((uint8_t *)(uintptr_t)data.data + 4096)); /* as the handler would */
    response_send(response_new(r), RESPONSE_FINAL, NULL);
    regions_lend_settle(delivered);
    unit_fails(err_copy(delivered->error), code, meanwhile);
    response_free(delivered);
    request_release(r);
    struct region *region;
    uint8_t *there;
    unit_fails(regions_use(all, named("in"), 0, 1, &region, &there), code, after);
    drop_all();
    assert_int_equal(ftruncate(memory, BYTES), 0);
    put("in");
    unit_succeeds(regions_use(all, named("in"), 0, 1, &region, &there));
    regions_unuse(region);
    region_unref(region);
    drop_all();
    config_unref((struct model_config *)(uintptr_t)t.config);
}

static void what_was_cut_is_of_no_use(void **state)
{
    (void)state;
    check_spoilt(4096, STATUS_INVALID_ARG, "'in' was cut short while", "'in' was cut short after");
}

static void what_found_no_room_is_of_no_use(void **state)
{
    (void)state;
    check_spoilt(BYTES, STATUS_UNAVAILABLE, "no room for shared memory region 'in' while",
                 "no room for shared memory region 'in' after");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT(names_are_in_order),
        UNIT(names_are_bounded),
        UNIT(names_and_keys_are_text),
        UNIT(off_is_off),
        UNIT(bounds),
        UNIT(what_may_be_opened),
        UNIT(what_the_process_has_mapped_is_not_there),
        UNIT(a_total_of_bytes),
        UNIT(a_request_uses_it_until_it_is_answered),
        UNIT(a_request_that_is_given_up_uses_nothing),
        UNIT(strings_are_read_once),
        UNIT(what_was_cut_is_of_no_use),
        UNIT(what_found_no_room_is_of_no_use),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
