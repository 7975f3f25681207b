/* os/shm_guard: what is mapped over memory that is gone, and where nothing is. */
#include "os/shm_guard.h"

#include "support/unit.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE  ((size_t)4096)
#define BYTES (8 * PAGE)

static int faults;

static void on_bus(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)context;
    faults++;
    if (!shm_guard_fault(info->si_addr))
        signal(SIGBUS, SIG_DFL);
}

/* Memory of BYTES bytes that was written all over and then cut to `left`. */
static unsigned char *cut_memory(size_t left)
{
    int fd = memfd_create("cut", MFD_CLOEXEC);
    assert_int_equal(ftruncate(fd, BYTES), 0);
    unsigned char *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(p, MAP_FAILED);
    memset(p, 'x', BYTES);
    assert_int_equal(ftruncate(fd, (off_t)left), 0);
    close(fd);
    return p;
}

static void catch_faults(void)
{
    struct sigaction act = {.sa_sigaction = on_bus, .sa_flags = SA_SIGINFO};
    sigaction(SIGBUS, &act, NULL);
    faults = 0;
}

/* Copies from the last byte to the first, as memcpy does where the processor likes that better. */
static void copy_backwards(unsigned char *to, const unsigned char *from, size_t bytes)
{
    while (bytes--)
        to[bytes] = *(const volatile unsigned char *)&from[bytes];
}

static void zeros_in_place_of_all(void **state)
{
    (void)state;
    catch_faults();
    unsigned char *p = cut_memory(2 * PAGE);
    int number = shm_guard_add(p, BYTES - 1);
    assert_true(number >= 0);
    assert_true(shm_guard_covers(p));
    assert_true(shm_guard_covers(p + BYTES - 1));
    assert_false(shm_guard_covers(p + BYTES));
    unsigned char copy[BYTES];
    errno = EDOM;
    copy_backwards(copy, p + PAGE, PAGE);
    assert_false(shm_guard_cut(number));
    assert_int_equal(copy[0], 'x');
    copy_backwards(copy, p, BYTES);
    assert_true(shm_guard_cut(number));
    assert_int_equal(faults, 1); /* the rest came with it */
    assert_int_equal(errno, EDOM);
    for (size_t i = 0; i < BYTES; i++)
        assert_int_equal(copy[i], 0);
    memset(p, 'y', BYTES); /* it may be written to */
    assert_int_equal(p[BYTES - 1], 'y');
    shm_guard_remove(number);
    assert_false(shm_guard_covers(p));
    munmap(p, BYTES);
}

/* A hole is found by whoever copies from the first byte, too. */
static void one_fault_for_copies_in_order(void **state)
{
    (void)state;
    catch_faults();
    unsigned char *p = cut_memory(2 * PAGE);
    int number = shm_guard_add(p, BYTES);
    for (size_t i = 0; i < BYTES; i++)
        assert_int_equal(*(volatile unsigned char *)&p[i], i < 2 * PAGE ? 'x' : 0);
    assert_int_equal(faults, 1);
    assert_int_equal(p[0], 0);
    shm_guard_remove(number);
    munmap(p, BYTES);
}

/* A number that was used before knows nothing of that. */
static void numbers_are_used_again(void **state)
{
    (void)state;
    catch_faults();
    unsigned char *p = cut_memory(0);
    int number = shm_guard_add(p, BYTES);
    p[0] = 1;
    assert_true(shm_guard_cut(number));
    shm_guard_remove(number);
    munmap(p, BYTES);
    p = cut_memory(BYTES);
    assert_int_equal(shm_guard_add(p, BYTES), number);
    assert_false(shm_guard_cut(number));
    shm_guard_remove(number);
    munmap(p, BYTES);
}

/* What is of no watched mapping stays a fault. */
static void others_are_left_alone(void **state)
{
    (void)state;
    unsigned char *p = cut_memory(0);
    assert_false(shm_guard_fault(p));
    assert_true(shm_guard_add(cut_memory(BYTES), BYTES) >= 0);
    assert_false(shm_guard_fault(p));
    munmap(p, BYTES);
}

static void there_is_a_most(void **state)
{
    (void)state;
    unsigned char *p = cut_memory(BYTES);
    int last = -1, taken = 0;
    while ((last = shm_guard_add(p, BYTES)) >= 0)
        taken++;
    assert_in_range(taken, SHM_GUARD_MAPPINGS - 4, SHM_GUARD_MAPPINGS);
    shm_guard_remove(7);
    assert_int_equal(shm_guard_add(p, BYTES), 7);
    munmap(p, BYTES);
}

UNIT_MAIN(UNIT(zeros_in_place_of_all), UNIT(one_fault_for_copies_in_order),
          UNIT(numbers_are_used_again), UNIT(others_are_left_alone), UNIT(there_is_a_most))
