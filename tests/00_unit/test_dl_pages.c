/* os/dl_pages: code that is not needed leaves memory; what the process wrote stays. */
#include "os/dl.h"
#include "os/dl_pages.h"
#include "os/heap.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define LIBRARY "libyyjson.so.0"

int main(void);

static uint64_t entry_of(const void *address)
{
    uint64_t entry = 0;
    int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    uintptr_t page = (uintptr_t)address / (uintptr_t)sysconf(_SC_PAGESIZE);
    assert_int_equal(pread(fd, &entry, sizeof(entry), (off_t)(page * sizeof(entry))),
                     (ssize_t)sizeof(entry));
    close(fd);
    return entry;
}

static bool in_memory(const void *address)
{
    return entry_of(address) >> 63;
}

static uint8_t *page_of(void *address)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    return (uint8_t *)((uintptr_t)address / page * page);
}

/* The address of a function that is called by nobody. */
static volatile uint8_t *some_code(void)
{
    struct dl *d;
    assert_null(dl_open(LIBRARY, &d));
    volatile uint8_t *code = dl_symbol(d, "yyjson_mut_merge_patch");
    assert_non_null(code);
    return code;
}

/* Runs before heap_begin: the process is not the server's yet. */
static void leaves_other_processes_alone(void **state)
{
    (void)state;
    volatile uint8_t *code = some_code();
    uint8_t first = *code;
    dl_pages_forget();
    assert_true(in_memory((const void *)(uintptr_t)code));
    assert_int_equal(*code, first);
}

static void forgets_code_that_comes_again_when_touched(void **state)
{
    (void)state;
    heap_begin();
    volatile uint8_t *code = some_code();
    uint8_t first = *code;
    assert_true(in_memory((const void *)(uintptr_t)code));
    dl_pages_forget();
    assert_false(in_memory((const void *)(uintptr_t)code));
    assert_int_equal(*code, first);
}

/* The thread sanitizer maps what it notes about code read-only: a write that it notes would fail. */
__attribute__((no_sanitize("thread"))) static void write_code(uint8_t *code, uint8_t byte)
{
    *code = byte;
}

/* As debuggers, tracers and just-in-time linkers do: they write into code. */
static void keeps_code_that_was_written(void **state)
{
    (void)state;
    heap_begin();
    uint8_t *code = (uint8_t *)(uintptr_t)some_code();
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    assert_int_equal(mprotect(page_of(code), page, PROT_READ | PROT_WRITE | PROT_EXEC), 0);
    uint8_t first = *code;
    write_code(code, (uint8_t)~first);
    assert_int_equal(mprotect(page_of(code), page, PROT_READ | PROT_EXEC), 0);
    dl_pages_forget();
    assert_int_equal(*(volatile uint8_t *)code, (uint8_t)~first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leaves_other_processes_alone),
        cmocka_unit_test(forgets_code_that_comes_again_when_touched),
        cmocka_unit_test(keeps_code_that_was_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
