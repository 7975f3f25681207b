#include "base/buf.h"

#include "os/thread.h"
#include "support/unit.h"

static int freed;

static void count_free(struct buf *b)
{
    (void)b;
    freed++;
}

static void freed_with_the_last_reference(void **state)
{
    (void)state;
    char bytes[4];
    struct buf b;
    freed = 0;
    buf_init(&b, bytes, sizeof(bytes), count_free);
    assert_int_equal(b.memory, BUF_MEMORY_CPU);
    assert_ptr_equal(buf_ref(&b), &b);
    buf_unref(&b);
    assert_int_equal(freed, 0);
    buf_unref(&b);
    assert_int_equal(freed, 1);
    buf_unref(NULL);
}

static void ref_and_unref(void *arg)
{
    for (int i = 0; i < 20000; i++)
        buf_unref(buf_ref(arg));
    buf_unref(arg);
}

static void across_threads(void **state)
{
    (void)state;
    struct buf b;
    struct thread *threads[3];
    freed = 0;
    buf_init(&b, NULL, 0, count_free);
    for (int i = 0; i < 3; i++) {
        buf_ref(&b);
        unit_succeeds(thread_start("refs", ref_and_unref, &b, &threads[i]));
    }
    buf_unref(&b);
    for (int i = 0; i < 3; i++)
        thread_join(threads[i]);
    assert_int_equal(freed, 1);
}

UNIT_MAIN(UNIT(freed_with_the_last_reference), UNIT(across_threads))
