/* Files of an override under failing system calls: an error, and nothing of them stays. */
#include "base/mem.h"
#include "os/files/stamp.h"
#include "os/files/tree.h"
#include "repo/override.h"
#include "repo/repo.h"
#include "repo/source.h"
#include "support/fault_run.h"
#include "support/unit.h"

#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

/* Everything is made below this directory. */
static char *scratch;

static void assert_empty(void)
{
    DIR *dir = opendir(scratch);
    assert_non_null(dir);
    int entries = 0;
    while (readdir(dir))
        entries++;
    closedir(dir);
    assert_int_equal(entries, 2);
}

static struct err *write_files(void *arg)
{
    (void)arg;
    static const struct repo_param params[] = {
        {.kind = REPO_PARAM_CONFIG, .data = "{}", .len = 2},
        {REPO_PARAM_FILE, "1/deep/model", "bytes", 5},
        {REPO_PARAM_FILE_BASE64, "1/other", "Zm9v", 4},
    };
    struct source *made = NULL;
    uint64_t stamp;
    struct err *e = override_write(params, 3, false, &made);
    if (!e)
        e = stamp_directory(made->dir, &stamp);
    if (!e)
        e = tree_share(made->dir, getegid());
    source_unref(made);
    assert_empty();
    return e;
}

static void overrides(void **state)
{
    (void)state;
    assert_true(fault_run(write_files, NULL) >= 13);
}

int main(void)
{
    if (tree_make("test-fault-tree", &scratch) || setenv("TMPDIR", scratch, 1) != 0)
        return 1;
    const struct CMUnitTest tests[] = {cmocka_unit_test(overrides)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    tree_remove(scratch);
    mem_free(scratch);
    return failed;
}
