/* repo/load/local: what a repository on the disk looks like. */
#include "base/mem.h"
#include "os/files/file.h"
#include "repo/load/local.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char *scratch(void)
{
    const char *base = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
    char *path = file_join(base, "test_local-XXXXXX");
    assert_non_null(mkdtemp(path));
    return path;
}

static void make_dir(const char *root, const char *name)
{
    char *path = file_join(root, name);
    assert_int_equal(mkdir(path, 0700), 0);
    mem_free(path);
}

static void make_file(const char *root, const char *name, const char *text)
{
    char *path = file_join(root, name);
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    mem_free(path);
}

static void drop(char *root, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char *path = file_join(root, names[i]);
        assert_int_equal(remove(path), 0);
        mem_free(path);
    }
    assert_int_equal(rmdir(root), 0);
    mem_free(root);
}

/* A definition may be a file or a directory: the names tell which. */
static void directories_end_in_a_slash(void **state)
{
    (void)state;
    char *model = scratch();
    make_dir(model, "1");
    make_dir(model, "1/model.onnx");
    make_file(model, "1/notes", "x");
    struct local_names files;
    assert_null(local_files(model, 1, &files));
    assert_int_equal(files.count, 2);
    assert_string_equal(files.names[0], "model.onnx/");
    assert_string_equal(files.names[1], "notes");
    local_names_fini(&files);
    static const char *const made[] = {"1/model.onnx", "1/notes", "1"};
    drop(model, made, 3);
}

static void directories_of_a_model_are_plain_names(void **state)
{
    (void)state;
    char *model = scratch();
    make_dir(model, "2");
    make_dir(model, "10");
    make_file(model, "config.pbtxt", "");
    struct local_names dirs;
    assert_null(local_directories(model, &dirs));
    assert_int_equal(dirs.count, 2);
    assert_string_equal(dirs.names[0], "10");
    assert_string_equal(dirs.names[1], "2");
    local_names_fini(&dirs);
    static const char *const made[] = {"2", "10", "config.pbtxt"};
    drop(model, made, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(directories_end_in_a_slash),
        cmocka_unit_test(directories_of_a_model_are_plain_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
