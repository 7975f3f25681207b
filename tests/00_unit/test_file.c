#include "os/files/file.h"

#include "base/mem.h"
#include "support/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[64];

static char *path(const char *name)
{
    static char p[128];
    snprintf(p, sizeof(p), "%s/%s", dir, name);
    return p;
}

static void put(const char *name, const void *bytes, size_t n)
{
    int fd = open(path(name), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, n), (ssize_t)n);
    close(fd);
}

static int make(void **state)
{
    (void)state;
    snprintf(dir, sizeof(dir), "/tmp/nereid-file-XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    static const char *const names[] = {"b", "a", ".hidden", "link", "to-sub", "dangling", "fifo"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        unlink(path(names[i]));
    rmdir(path("sub"));
    return rmdir(dir);
}

static void reads_the_whole(void **state)
{
    (void)state;
    char *text = NULL;
    size_t len = 99;
    put("a", "x\0y", 3);
    unit_succeeds(file_read(path("a"), 3, &text, &len));
    assert_int_equal(len, 3);
    assert_memory_equal(text, "x\0y", 4);
    mem_free(text);
    put("b", "", 0);
    unit_succeeds(file_read(path("b"), 0, &text, &len));
    assert_int_equal(len, 0);
    assert_string_equal(text, "");
    mem_free(text);
}

static void what_cannot_be_read(void **state)
{
    (void)state;
    char *text = NULL;
    size_t len = 0;
    put("a", "1234", 4);
    unit_fails(file_read(path("a"), 3, &text, &len), STATUS_INVALID_ARG,
               "has 4 bytes; at most 3 are read");
    unit_fails(file_read(path("nothing"), 10, &text, &len), STATUS_NOT_FOUND,
               "/nothing': No such file or directory");
    unit_fails(file_read(dir, 10, &text, &len), STATUS_INVALID_ARG, "is not a regular file");
    assert_int_equal(mkfifo(path("fifo"), 0600), 0);
    unit_fails(file_read(path("fifo"), 10, &text, &len), STATUS_INVALID_ARG,
               "is not a regular file");
    assert_null(text);
}

static void lists_by_name(void **state)
{
    (void)state;
    struct file_list l;
    put("b", "", 0);
    put("a", "", 0);
    put(".hidden", "", 0);
    assert_int_equal(mkdir(path("sub"), 0700), 0);
    assert_int_equal(symlink("sub", path("to-sub")), 0);
    assert_int_equal(symlink("a", path("link")), 0);
    assert_int_equal(symlink("nowhere", path("dangling")), 0);
    unit_succeeds(file_list_dir(dir, 6, &l));
    const char *names[] = {"a", "b", "dangling", "link", "sub", "to-sub"};
    assert_int_equal(l.count, 6);
    for (size_t i = 0; i < 6; i++) {
        assert_string_equal(l.entries[i].name, names[i]);
        assert_int_equal(l.entries[i].is_dir, i >= 4);
    }
    file_list_fini(&l);
    file_list_fini(&l);
    unit_fails(file_list_dir(dir, 5, &l), STATUS_INVALID_ARG, "has more than 5 entries");
    unit_succeeds(file_list_dir(path("sub"), 0, &l));
    assert_int_equal(l.count, 0);
    file_list_fini(&l);
    unit_fails(file_list_dir(path("nothing"), 5, &l), STATUS_NOT_FOUND, "No such file");
    unit_fails(file_list_dir(path("a"), 5, &l), STATUS_INTERNAL, "Not a directory");
}

static void questions(void **state)
{
    (void)state;
    put("a", "", 0);
    assert_true(file_exists(path("a")));
    assert_true(file_exists(dir));
    assert_false(file_exists(path("nothing")));
    assert_true(file_is_dir(dir));
    assert_false(file_is_dir(path("a")));
    assert_false(file_is_dir(path("nothing")));
}

static void joined(const char *a, const char *b, const char *expected)
{
    char *p = file_join(a, b);
    assert_string_equal(p, expected);
    mem_free(p);
}

static void joins(void **state)
{
    (void)state;
    joined("a", "b", "a/b");
    joined("/a/b//", "c", "/a/b/c");
    joined("a", "", "a/");
}

/* Appending to a pipe waits neither for a reader nor for room. */
static void pipes_do_not_wait(void **state)
{
    (void)state;
    static char bytes[1 << 16];
    int fd = -1;
    assert_int_equal(mkfifo(path("fifo"), 0600), 0);
    unit_fails(file_append(path("fifo"), &fd), STATUS_INVALID_ARG,
               "expected a reader of this named pipe, found none");
    assert_int_equal(fd, -1);
    int reader = open(path("fifo"), O_RDONLY | O_NONBLOCK);
    unit_succeeds(file_append(path("fifo"), &fd));
    while (write(fd, bytes, sizeof(bytes)) > 0)
        continue;
    assert_int_equal(errno, EAGAIN);
    close(reader);
    unit_fails(file_append_anew(path("fifo"), fd), STATUS_INVALID_ARG, "found none");
    assert_true(fcntl(fd, F_GETFD) >= 0);
    close(fd);
}

#define FILE_UNIT(fn) cmocka_unit_test_setup_teardown(fn, make, end)
UNIT_MAIN(FILE_UNIT(reads_the_whole), FILE_UNIT(what_cannot_be_read), FILE_UNIT(lists_by_name),
          FILE_UNIT(questions), UNIT(joins), FILE_UNIT(pipes_do_not_wait))
