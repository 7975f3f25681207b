/* Memory for the outputs of an isolated model: as long as one of them has a place there is
 * something to come back to. */
#include "isolate/child/isolate_child_priv.h"

#include "base/mem.h"
#include "os/loop.h"
#include "os/shm.h"
#include "isolate/wire/isolate_pool.h"
#include "plugin/backend.h"
#include "support/unit.h"

#include <string.h>

#define BYTES ((uint64_t)64 * ISOLATE_POOL_PAGE)
#define LARGE (3u * ISOLATE_POOL_PAGE)

static struct isolate_child *child;
static int fd;
static uint8_t *shared;
static unsigned wanted; /* how often the loop was asked to look */

static void look(struct mail *m)
{
    (void)m;
    wanted++;
}

static int make(void **state)
{
    (void)state;
    child = MEM_NEW(struct isolate_child);
    child->trim_mail.deliver = look;
    child->backend = MEM_NEW(struct plugin_backend);
    wanted = 0;
    unit_succeeds(loop_new(&child->loop));
    unit_succeeds(shm_create("outputs", ISOLATE_SLOTS + BYTES, &fd));
    shared = shm_map(fd, ISOLATE_SLOTS + BYTES);
    assert_non_null(shared);
    isolate_child_outputs_init(&child->outputs, fd, shared, BYTES, BYTES);
    return 0;
}

static int end(void **state)
{
    (void)state;
    isolate_child_outputs_fini(&child->outputs);
    shm_unmap(shared, ISOLATE_SLOTS + BYTES);
    shm_close(fd);
    loop_free(child->loop);
    mem_free(child->backend);
    mem_free(child);
    return 0;
}

/* A look falls between an output's beginning and its end: it must not be the last one, for
 * nobody asks again. */
static void looked_at_while_it_is_written(void **state)
{
    (void)state;
    struct allocator *a = &child->outputs.allocator;
    TRITONSERVER_ResponseAllocator *handle = (TRITONSERVER_ResponseAllocator *)a;
    TRITONSERVER_MemoryType memory;
    int64_t device;
    void *bytes, *place;
    assert_false(isolate_child_outputs_trim(&child->outputs));
    assert_null(a->alloc(handle, "O", LARGE, TRITONSERVER_MEMORY_CPU, 0, NULL, &bytes, &place,
                         &memory, &device));
    memset(bytes, 1, LARGE);
    assert_true(isolate_child_outputs_trim(&child->outputs));
    assert_null(a->release(handle, bytes, place, LARGE, memory, device));
    assert_true(isolate_child_outputs_trim(&child->outputs)); /* warm */
    loop_free(child->loop);                                   /* delivers what waits */
    child->loop = NULL;
    assert_int_equal(wanted, 1);
}

UNIT_MAIN(cmocka_unit_test_setup_teardown(looked_at_while_it_is_written, make, end))
