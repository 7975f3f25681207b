/* os/files/stamp: a number that changes with the files. */
#include "os/files/stamp.h"

#include "base/mem.h"
#include "os/files/file.h"
#include "os/files/tree.h"
#include "support/unit.h"

#include <fcntl.h>
#include <stdio.h>
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

static uint64_t stamp(void)
{
    uint64_t s;
    unit_succeeds(stamp_directory(root, &s));
    return s;
}

struct parts {
    uint64_t one;
    uint64_t rest;
    bool one_is_dir;
};

/* "xtra" belongs to no part. */
static uint64_t *part_of(void *owner, const char *name, bool is_dir)
{
    struct parts *p = owner;
    if (strcmp(name, "xtra") == 0)
        return NULL;
    if (strcmp(name, "1") != 0)
        return &p->rest;
    p->one_is_dir = is_dir;
    return &p->one;
}

static struct parts parts(void)
{
    struct parts p = {0};
    unit_succeeds(stamp_parts(root, part_of, &p));
    return p;
}

static void set_time(const char *name, time_t seconds)
{
    char *path = file_join(root, name);
    struct timespec times[2] = {{.tv_sec = seconds}, {.tv_sec = seconds}};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    mem_free(path);
}

static void changes_with_files(void **state)
{
    (void)state;
    uint64_t first = stamp();
    assert_true(stamp() == first);
    set_time("1/model", 1000);
    uint64_t touched = stamp();
    assert_true(touched != first);
    unit_succeeds(tree_write(root, "1/more", "", 0));
    uint64_t more = stamp();
    assert_true(more != touched);
    char *path = file_join(root, "1/more");
    assert_int_equal(unlink(path), 0);
    mem_free(path);
    assert_true(stamp() == touched);
}

static void parts_change_on_their_own(void **state)
{
    (void)state;
    unit_succeeds(tree_write(root, "xtra", "x", 1));
    struct parts first = parts();
    assert_true(first.one_is_dir);
    set_time("xtra", 2000);
    assert_true(parts().one == first.one && parts().rest == first.rest);
    set_time("1/model", 2000);
    assert_true(parts().one != first.one && parts().rest == first.rest);
    struct parts second = parts();
    set_time("config.pbtxt", 2000);
    assert_true(parts().one == second.one && parts().rest != second.rest);
}

/* More names than one call of the kernel gives. */
static void sees_every_entry(void **state)
{
    (void)state;
    char name[64];
    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof(name), "a-name-of-some-length-that-fills-the-buffer-%d", i);
        unit_succeeds(tree_write(root, name, "", 0));
    }
    uint64_t whole = stamp();
    for (int i = 0; i < 300; i += 37) {
        snprintf(name, sizeof(name), "a-name-of-some-length-that-fills-the-buffer-%d", i);
        set_time(name, 3000 + i);
        uint64_t now = stamp();
        assert_true(now != whole);
        whole = now;
    }
}

static void make_link(const char *name, const char *target)
{
    char *link = file_join(root, name);
    assert_int_equal(symlink(target, link), 0);
    mem_free(link);
}

/* A look that went into them would take for ever: 16 levels of six links are 10^12 directories. */
static void links_that_go_round_end(void **state)
{
    (void)state;
    make_link("1/here", ".");
    make_link("1/up", "..");
    make_link("1/whole", root);
    make_link("1/a", ".");
    make_link("1/b", ".");
    make_link("1/c", ".");
    make_link("round", root);
    uint64_t first = stamp();
    assert_true(stamp() == first);
    assert_true(parts().one == parts().one);
    set_time("1/model", 1000);
    assert_true(stamp() != first);
}

/* Links that lead from each of ten directories to the others: no way comes back, and there are
 * millions of ways. */
static void too_many_ways_are_refused(void **state)
{
    (void)state;
    char name[64];
    char target[64];
    for (int i = 0; i < 10; i++) {
        snprintf(name, sizeof(name), "1/%d/model", i);
        unit_succeeds(tree_write(root, name, "", 0));
        for (int k = 0; k < 10; k++) {
            snprintf(name, sizeof(name), "1/%d/to-%d", i, k);
            snprintf(target, sizeof(target), "../%d", k);
            make_link(name, target);
        }
    }
    struct parts p = {0};
    unit_fails(stamp_parts(root, part_of, &p), STATUS_INVALID_ARG, root);
}

/* What is linked from the outside is a part of it all the same. */
static void links_elsewhere_are_followed(void **state)
{
    (void)state;
    unit_succeeds(tree_write(root, "shared/weights", "w", 1));
    make_link("1/weights", "../shared");
    uint64_t first = parts().one;
    set_time("shared/weights", 1000);
    assert_true(parts().one != first);
}

static void needs_a_directory(void **state)
{
    (void)state;
    uint64_t s;
    struct parts p;
    unit_fails(stamp_directory("/nowhere/at/all", &s), STATUS_NOT_FOUND, "/nowhere/at/all");
    unit_fails(stamp_parts("/nowhere/at/all", part_of, &p), STATUS_NOT_FOUND, "/nowhere/at/all");
}

/* Owner and mode are changed without a change of the content's time. */
static void a_file_changes_with_its_mode(void **state)
{
    (void)state;
    char *path = file_join(root, "1/model");
    uint64_t first = stamp_file(path);
    assert_true(first && stamp_file(path) == first);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    struct timespec before = st.st_ctim;
    do { /* two changes in one tick of the file system's clock look alike */
        assert_int_equal(chmod(path, 0640), 0);
        assert_int_equal(stat(path, &st), 0);
    } while (memcmp(&before, &st.st_ctim, sizeof(before)) == 0);
    assert_true(stamp_file(path) != first);
    mem_free(path);
}

/* What failed is read again at every look; it is told once, until the words change. */
static void failed_readings_are_tried_again(void **state)
{
    (void)state;
    struct stamp_watch w = {0};
    struct err *one = err_new(STATUS_INVALID_ARG, "one");
    struct err *two = err_new(STATUS_INVALID_ARG, "two");
    assert_true(stamp_watch_due(&w, 1, true));
    assert_false(stamp_watch_read(&w, NULL));
    assert_false(stamp_watch_due(&w, 1, false));
    assert_false(stamp_watch_due(&w, 2, false)); /* being written */
    assert_true(stamp_watch_due(&w, 2, false));
    assert_true(stamp_watch_read(&w, one));
    assert_true(stamp_watch_due(&w, 2, false));
    assert_false(stamp_watch_read(&w, one));
    assert_false(stamp_watch_due(&w, 3, false));
    assert_true(stamp_watch_due(&w, 3, false));
    assert_true(stamp_watch_read(&w, two));
    assert_true(stamp_watch_due(&w, 3, false));
    assert_false(stamp_watch_read(&w, NULL));
    assert_false(stamp_watch_due(&w, 3, false));
    assert_true(stamp_watch_due(&w, 3, true));
    assert_true(stamp_watch_read(&w, two)); /* it was well in between */
    err_free(one);
    err_free(two);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(changes_with_files, make, end),
        cmocka_unit_test_setup_teardown(parts_change_on_their_own, make, end),
        cmocka_unit_test_setup_teardown(sees_every_entry, make, end),
        cmocka_unit_test_setup_teardown(links_that_go_round_end, make, end),
        cmocka_unit_test_setup_teardown(too_many_ways_are_refused, make, end),
        cmocka_unit_test_setup_teardown(links_elsewhere_are_followed, make, end),
        cmocka_unit_test_setup_teardown(needs_a_directory, make, end),
        cmocka_unit_test_setup_teardown(a_file_changes_with_its_mode, make, end),
        cmocka_unit_test(failed_readings_are_tried_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
