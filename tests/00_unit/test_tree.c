/* os/files/tree: directories of our own that nothing leaves. */
#include "os/files/tree.h"

#include "base/mem.h"
#include "os/files/file.h"
#include "support/unit.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* RX-39. */
static void names_stay_below(void **state)
{
    (void)state;
    static const char *const good[] = {"a",     "1/model.onnx", "1/a/b/c",  "..x",
                                       "1/...", "1/%2e%2e",     "1/\\..\\x"};
    static const char *const bad[] = {"",     "/",   "/a",  "a/",   "..",     "../a",
                                      "a/..", "a/.", "./a", "a//b", "a/../b", "a/b/../c"};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        assert_true(tree_name_ok(good[i]));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(tree_name_ok(bad[i]));
    char deep[TREE_MAX_DEPTH * 2 + 2];
    for (unsigned i = 0; i < TREE_MAX_DEPTH; i++)
        memcpy(deep + i * 2, "a/", 2);
    memcpy(deep + sizeof(deep) - 2, "a", 2);
    assert_false(tree_name_ok(deep));
    assert_true(tree_name_ok(deep + 2));
    char wide[257];
    memset(wide, 'n', sizeof(wide) - 1);
    wide[256] = '\0';
    assert_false(tree_name_ok(wide));
    assert_true(tree_name_ok(wide + 1));
}

static void writes_reads_and_removes(void **state)
{
    (void)state;
    char *root;
    unit_succeeds(tree_make("test-tree", &root));
    struct stat st;
    assert_int_equal(stat(root, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    unit_succeeds(tree_write(root, "1/deep/file", "bytes", 5));
    unit_succeeds(tree_write(root, "1/empty", "", 0));
    char *path = file_join(root, "1/deep/file");
    char *text;
    size_t len;
    unit_succeeds(file_read(path, 100, &text, &len));
    assert_int_equal(len, 5);
    assert_string_equal(text, "bytes");
    mem_free(text);
    mem_free(path);
    unit_fails(tree_write(root, "1/empty", "x", 1), STATUS_INVALID_ARG, "1/empty");
    unit_fails(tree_write(root, "1/empty/below", "x", 1), STATUS_INVALID_ARG, "1/empty/below");
    unit_fails(tree_write(root, "1/deep", "x", 1), STATUS_INVALID_ARG, "1/deep");
    unit_fails(tree_write(root, "../escaped", "x", 1), STATUS_INVALID_ARG, "../escaped");
    tree_remove(root);
    assert_false(file_exists(root));
    mem_free(root);
}

/* RX-39: A link in the tree is neither followed when writing nor when removing. */
static void follows_no_link(void **state)
{
    (void)state;
    char *root;
    char *other;
    unit_succeeds(tree_make("test-tree", &root));
    unit_succeeds(tree_make("test-tree", &other));
    unit_succeeds(tree_write(other, "kept", "x", 1));
    char *link = file_join(root, "out");
    assert_int_equal(symlink(other, link), 0);
    char *file_link = file_join(root, "file");
    char *target = file_join(other, "made");
    assert_int_equal(symlink(target, file_link), 0);
    unit_fails(tree_write(root, "out/x", "x", 1), STATUS_INVALID_ARG, "out/x");
    unit_fails(tree_write(root, "file", "x", 1), STATUS_INVALID_ARG, "file");
    assert_false(file_exists(target));
    tree_remove(root);
    char *kept = file_join(other, "kept");
    assert_true(file_exists(kept));
    tree_remove(other);
    mem_free(kept);
    mem_free(target);
    mem_free(file_link);
    mem_free(link);
    mem_free(root);
    mem_free(other);
}

/* A tree of a process that was killed goes; one of a live process, a file, a link and what has a
 * longer name stay. */
static void sweeps_what_the_dead_left(void **state)
{
    (void)state;
    char *base;
    char *mine;
    int started[2];
    unit_succeeds(tree_make("test-tree", &base));
    assert_int_equal(setenv("TMPDIR", base, 1), 0);
    assert_int_equal(pipe(started), 0);
    pid_t child = fork();
    if (child == 0) {
        char *left;
        _exit(tree_make("swept", &left) || tree_write(left, "1/file", "x", 1) ||
              write(started[1], left, strlen(left) + 1) < 0 || pause());
    }
    char theirs[256];
    assert_true(read(started[0], theirs, sizeof(theirs)) > 0);
    unit_succeeds(tree_make("swept", &mine));
    unit_succeeds(tree_write(base, "swept-afile1", "x", 1));
    unit_succeeds(tree_write(base, "swept-longer1/x", "x", 1));
    tree_sweep((const char *const[]){"swept", NULL});
    assert_true(file_exists(theirs));
    assert_true(file_exists(mine));
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    tree_sweep((const char *const[]){"other", NULL});
    assert_true(file_exists(theirs));
    tree_sweep((const char *const[]){"swept", NULL});
    assert_false(file_exists(theirs));
    assert_true(file_exists(mine));
    char *file = file_join(base, "swept-afile1");
    char *longer = file_join(base, "swept-longer1");
    assert_true(file_exists(file));
    assert_true(file_exists(longer));
    tree_remove_all();
    assert_false(file_exists(mine));
    assert_false(file_exists(base));
    unsetenv("TMPDIR");
    close(started[0]);
    close(started[1]);
    mem_free(longer);
    mem_free(file);
    mem_free(mine);
    mem_free(base);
}

static unsigned mode_of(const char *root, const char *name)
{
    struct stat st;
    char *path = file_join(root, name);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_gid, getegid());
    mem_free(path);
    return st.st_mode & 0777;
}

/* RX-39. The group reads, and nobody else does; a link in the tree gives nothing away. */
static void is_shared_with_a_group(void **state)
{
    (void)state;
    char *root;
    char *other;
    unit_succeeds(tree_make("test-tree", &root));
    unit_succeeds(tree_make("test-tree", &other));
    unit_succeeds(tree_write(root, "1/deep/file", "bytes", 5));
    unit_succeeds(tree_share(root, getegid()));
    assert_int_equal(mode_of(root, "."), 0750);
    assert_int_equal(mode_of(root, "1/deep"), 0750);
    assert_int_equal(mode_of(root, "1/deep/file"), 0640);
    char *link = file_join(root, "1/link");
    assert_int_equal(symlink(other, link), 0);
    unit_fails(tree_share(root, getegid()), STATUS_UNSUPPORTED, root);
    assert_int_equal(mode_of(other, "."), 0700);
    mem_free(link);
    tree_remove(root);
    tree_remove(other);
    unit_fails(tree_share(root, getegid()), STATUS_UNSUPPORTED, root);
    mem_free(root);
    mem_free(other);
}

UNIT_MAIN(UNIT(names_stay_below), UNIT(writes_reads_and_removes), UNIT(follows_no_link),
          UNIT(sweeps_what_the_dead_left), UNIT(is_shared_with_a_group))
