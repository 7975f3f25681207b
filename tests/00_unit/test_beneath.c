/* os/files/beneath: a name from outside reads what lies in its directory and nothing else. */
#include "os/files/beneath.h"

#include "base/fault.h"
#include "base/mem.h"
#include "os/files/file.h"
#include "os/files/tree.h"
#include "support/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *root; /* ROOT/in is the directory, ROOT/out lies beside it */
static char *in;

static void link_to(const char *from, const char *to)
{
    char *path = file_join(in, from);
    assert_int_equal(symlink(to, path), 0);
    mem_free(path);
}

static int set_up(void **state)
{
    (void)state;
    assert_null(tree_make("beneath", &root));
    assert_null(tree_write(root, "out", "secret", 6));
    assert_null(tree_write(root, "in/plain", "plain", 5));
    assert_null(tree_write(root, "in/deep/er/file", "deep", 4));
    in = file_join(root, "in");
    link_to("inside", "deep/er/file");
    link_to("deep/up", "../plain");
    link_to("outside", "../out");
    link_to("absolute", "/etc/passwd");
    link_to("round", "round");
    link_to("door", "..");
    char *pipe = file_join(in, "pipe");
    assert_int_equal(mkfifo(pipe, 0600), 0);
    mem_free(pipe);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    tree_remove(root);
    mem_free(root);
    mem_free(in);
    return 0;
}

static void reads(const char *name, const char *expected)
{
    char *text = NULL;
    size_t len;
    assert_null(beneath_read(in, name, 100, &text, &len));
    assert_string_equal(text, expected);
    assert_int_equal(len, strlen(expected));
    mem_free(text);
}

static void refuses(const char *name, size_t max, enum status code, const char *words)
{
    char *text = NULL;
    size_t len;
    struct err *e = beneath_read(in, name, max, &text, &len);
    assert_non_null(e);
    assert_int_equal(err_code(e), code);
    assert_non_null(strstr(err_message(e), words));
    assert_null(text);
    err_free(e);
}

static void reads_what_lies_inside(void **state)
{
    (void)state;
    reads("plain", "plain");
    reads("./plain", "plain");
    reads("deep/er/file", "deep");
    reads("deep/../plain", "plain");
    reads("inside", "deep");
    reads("deep/up", "plain");
}

static void refuses_what_leads_out(void **state)
{
    (void)state;
    static const char *const names[] = {"../out",   "deep/../../out", "/etc/passwd",
                                        "outside",  "absolute",       "round",
                                        "door/out", "door/in/plain"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        refuses(names[i], 100, STATUS_INVALID_ARG, "leads out of");
}

static void refuses_what_is_no_file(void **state)
{
    (void)state;
    refuses("deep", 100, STATUS_INVALID_ARG, "not a regular file");
    refuses("pipe", 100, STATUS_INVALID_ARG, "not a regular file");
    refuses("plain", 4, STATUS_INVALID_ARG, "at most 4 are read");
    refuses("nothing", 100, STATUS_NOT_FOUND, "nothing");
    refuses("plain/more", 100, STATUS_INTERNAL, "plain/more");
}

static int by_steps(const char *name)
{
    int dir = open(in, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int fd = beneath_open_by_steps(dir, name);
    int why = errno;
    close(dir);
    if (fd >= 0)
        close(fd);
    errno = why;
    return fd;
}

static void walks_where_the_call_is_missing(void **state)
{
    (void)state;
    assert_true(by_steps("plain") >= 0);
    assert_true(by_steps("deep/er/file") >= 0);
    static const char *const names[] = {"../out", "deep/../plain", "/etc/passwd", "", "deep//er"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_int_equal(by_steps(names[i]), -1);
        assert_int_equal(errno, EXDEV);
    }
    assert_int_equal(by_steps("inside"), -1);
    assert_int_equal(errno, ELOOP);
    assert_int_equal(by_steps("door/out"), -1);
    assert_int_equal(by_steps("nothing"), -1);
    assert_int_equal(errno, ENOENT);
}

static void says_what_the_system_refuses(void **state)
{
    (void)state;
    for (long n = 1; n <= 3; n++) {
        char *text = NULL;
        size_t len;
        fault_arm(n);
        struct err *e = beneath_read(in, "plain", 100, &text, &len);
        fault_arm(0);
        assert_non_null(e);
        assert_null(text);
        err_free(e);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_lies_inside),
        cmocka_unit_test(refuses_what_leads_out),
        cmocka_unit_test(refuses_what_is_no_file),
        cmocka_unit_test(walks_where_the_call_is_missing),
        cmocka_unit_test(says_what_the_system_refuses),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
