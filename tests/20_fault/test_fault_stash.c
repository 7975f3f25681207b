/* The cache of cloud repositories under failing system calls: the content is whole, or there is
 * an error. Clearing up may fail unnoticed: the next start does it. */
#include "base/fault.h"
#include "base/mem.h"
#include "os/files/disk.h"
#include "os/files/file.h"
#include "os/files/tree.h"
#include "cloud/stash.h"
#include "support/unit.h"

#include <string.h>

static char *scratch;

static void *begin(void)
{
    return mem_zalloc(STASH_HASH_BYTES);
}

static void hash_add(void *hash, const void *data, size_t len)
{
    unsigned char *h = hash;
    const unsigned char *d = data;
    for (size_t i = 0; i < len; i++)
        h[i % STASH_HASH_BYTES] = (unsigned char)(h[i % STASH_HASH_BYTES] * 31u + d[i]);
}

static void end(void *hash, unsigned char out[STASH_HASH_BYTES])
{
    memcpy(out, hash, STASH_HASH_BYTES);
    mem_free(hash);
}

static struct err *put(struct stash *s, const char *id)
{
    unsigned char sha[STASH_HASH_BYTES] = {0};
    struct stash_part *p = NULL;
    struct err *e = stash_begin(s, id, 5, 2, &p);
    if (!e)
        e = disk_write_at(p->fd, "hello", 5, 0);
    if (!e)
        e = stash_piece_done(p, 0);
    if (e) {
        stash_leave(p);
        return e;
    }
    hash_add(sha, "hello", 5);
    return stash_commit(s, p, sha);
}

static struct err *store_and_link(void)
{
    const struct stash_hash hash = {begin, hash_add, end};
    char id[STASH_ID_CHARS + 1];
    struct stash *s = NULL;
    char *dir = NULL;
    char *to = NULL;
    bool found = false;
    struct err *e = stash_open(scratch, 1000, &hash, &s);
    if (!e)
        e = stash_model_dir(s, "m", &dir);
    if (!e) {
        stash_id(s, "object", id);
        to = file_join(dir, "file");
        e = put(s, id);
    }
    if (!e)
        e = stash_link(s, id, 5, to, &found);
    if (!e && !found) /* a reference that cannot be read counts as absent */
        e = err_new(STATUS_UNAVAILABLE, "not there");
    if (found) {
        char *text = NULL;
        size_t len;
        struct err *unread = file_read(to, 100, &text, &len);
        if (!unread)
            assert_string_equal(text, "hello");
        if (!e)
            e = unread;
        else
            err_free(unread);
        mem_free(text);
    }
    mem_free(to);
    mem_free(dir);
    stash_close(s);
    tree_remove(scratch);
    return e;
}

static void stash(void **state)
{
    (void)state;
    fault_arm(0);
    unit_succeeds(store_and_link());
    long points = fault_passed();
    long errors = 0;
    for (long n = 1; n <= points; n++) {
        fault_arm(n);
        struct err *e = store_and_link();
        fault_arm(0);
        errors += e != NULL;
        err_free(e);
    }
    assert_true(points >= 40 && errors >= 20);
}

int main(void)
{
    char *root;
    if (tree_make("test-fault-stash", &root))
        return 1;
    scratch = file_join(root, "cache");
    const struct CMUnitTest tests[] = {cmocka_unit_test(stash)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    tree_remove(root);
    mem_free(scratch);
    mem_free(root);
    return failed;
}
