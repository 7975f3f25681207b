/* os/stamp: a number that changes with the files. */
#include "os/stamp.h"

#include "base/mem.h"
#include "os/file.h"
#include "os/tree.h"
#include "support/unit.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *root;

static int make(void **state)
{
    (void)state;
    unit_succeeds(tree_make("test-stamp", &root));
    unit_succeeds(tree_write(root, "1/model", "abc", 3));
    unit_succeeds(tree_write(root, "config.pbtxt", "x", 1));
    return 0;
}

static int end(void **state)
{
    (void)state;
    tree_remove(root);
    mem_free(root);
    return 0;
}

static uint64_t stamp(bool (*skip)(const char *name))
{
    uint64_t s;
    unit_succeeds(stamp_directory(root, skip, &s));
    return s;
}

static void set_time(const char *name, time_t seconds)
{
    char *path = file_join(root, name);
    struct timespec times[2] = {{.tv_sec = seconds}, {.tv_sec = seconds}};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    mem_free(path);
}

static bool is_one(const char *name)
{
    return strcmp(name, "1") == 0;
}

static void changes_with_files(void **state)
{
    (void)state;
    uint64_t first = stamp(NULL);
    assert_true(stamp(NULL) == first);
    set_time("1/model", 1000);
    uint64_t touched = stamp(NULL);
    assert_true(touched != first);
    unit_succeeds(tree_write(root, "1/more", "", 0));
    uint64_t more = stamp(NULL);
    assert_true(more != touched);
    char *path = file_join(root, "1/more");
    assert_int_equal(unlink(path), 0);
    mem_free(path);
    assert_true(stamp(NULL) == touched);
}

static void leaves_out_what_is_skipped(void **state)
{
    (void)state;
    uint64_t without = stamp(is_one);
    set_time("1/model", 2000);
    assert_true(stamp(is_one) == without);
    set_time("config.pbtxt", 2000);
    assert_true(stamp(is_one) != without);
}

static void links_that_go_round_end(void **state)
{
    (void)state;
    char *link = file_join(root, "round");
    assert_int_equal(symlink(root, link), 0);
    assert_true(stamp(NULL) == stamp(NULL));
    mem_free(link);
}

static void needs_a_directory(void **state)
{
    (void)state;
    uint64_t s;
    unit_fails(stamp_directory("/nowhere/at/all", NULL, &s), STATUS_NOT_FOUND, "/nowhere/at/all");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(changes_with_files, make, end),
        cmocka_unit_test_setup_teardown(leaves_out_what_is_skipped, make, end),
        cmocka_unit_test_setup_teardown(links_that_go_round_end, make, end),
        cmocka_unit_test_setup_teardown(needs_a_directory, make, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
