/* cloud/stash: content once, whole or not at all, within its bound. */
#include "cloud/stash.h"

#include "base/mem.h"
#include "base/strbuf.h"
#include "os/files/disk.h"
#include "os/files/file.h"
#include "os/thread.h"
#include "os/files/tree.h"
#include "support/unit.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A digest that is good enough to tell one from the other. */
static void *begin(void)
{
    return mem_zalloc(STASH_HASH_BYTES);
}

static void hash_add(void *hash, const void *data, size_t len)
{
    unsigned char *h = hash;
    const unsigned char *d = data;
    for (size_t i = 0; i < len; i++)
        for (size_t k = 0; k < STASH_HASH_BYTES; k++)
            h[k] = (unsigned char)(h[k] * 31u + d[i] + k);
}

static void end(void *hash, unsigned char out[STASH_HASH_BYTES])
{
    memcpy(out, hash, STASH_HASH_BYTES);
    mem_free(hash);
}

static const struct stash_hash digest = {begin, hash_add, end};
static char *root;

static struct stash *open_stash(uint64_t max)
{
    struct stash *s;
    unit_succeeds(stash_open(root, max, &digest, &s));
    return s;
}

static int setup(void **state)
{
    (void)state;
    struct err *e = tree_make("test-stash", &root);
    err_free(e);
    return e ? 1 : 0;
}

static int teardown(void **state)
{
    (void)state;
    tree_remove(root);
    mem_free(root);
    return 0;
}

static void sha_of(const char *text, unsigned char out[STASH_HASH_BYTES])
{
    void *h = begin();
    hash_add(h, text, strlen(text));
    end(h, out);
}

/* Stores a text under the id of a name. */
static void store(struct stash *s, const char *name, const char *text)
{
    char id[STASH_ID_CHARS + 1];
    unsigned char sha[STASH_HASH_BYTES];
    struct stash_part *p;
    stash_id(s, name, id);
    unit_succeeds(stash_begin(s, id, strlen(text), 1, &p));
    assert_non_null(p);
    unit_succeeds(disk_write_at(p->fd, text, strlen(text), 0));
    sha_of(text, sha);
    unit_succeeds(stash_commit(s, p, sha));
}

/* The content of a name as a model's file; "" when it is not there. The caller's. */
static char *fetch(struct stash *s, const char *name, size_t len, const char *dir)
{
    char id[STASH_ID_CHARS + 1];
    bool found;
    char *to = file_join(dir, name);
    char *text = NULL;
    size_t got;
    stash_id(s, name, id);
    unit_succeeds(stash_link(s, id, len, to, &found));
    if (found)
        unit_succeeds(file_read(to, 1000, &text, &got));
    mem_free(to);
    return text ? text : mem_strdup("");
}

static void expect(struct stash *s, const char *name, size_t len, const char *dir, const char *text)
{
    char *found = fetch(s, name, len, dir);
    assert_string_equal(found, text);
    mem_free(found);
}

static void keeps_and_gives(void **state)
{
    (void)state;
    struct stash *s = open_stash(1000);
    char *dir;
    unit_succeeds(stash_model_dir(s, "model", &dir));
    assert_string_equal(strrchr(dir, '/'), "/model");
    expect(s, "a", 5, dir, "");
    store(s, "a", "hello");
    store(s, "same", "hello");
    expect(s, "a", 5, dir, "hello");
    expect(s, "same", 5, dir, "hello");
    expect(s, "b", 5, dir, "");
    stash_drop_model_dir(dir);
    assert_false(file_exists(dir));
    mem_free(dir);
    stash_close(s);
    s = open_stash(1000);
    unit_succeeds(stash_model_dir(s, "model", &dir));
    expect(s, "a", 5, dir, "hello");
    mem_free(dir);
    stash_close(s); /* and what is in its model directories */
}

static void damage_is_seen(void **state)
{
    (void)state;
    struct stash *s = open_stash(1000);
    char *dir;
    unit_succeeds(stash_model_dir(s, "m", &dir));
    store(s, "d", "damaged soon");
    expect(s, "d", 12, dir, "damaged soon");
    char *file = file_join(dir, "d");
    chmod(file, 0600);
    assert_int_equal(truncate(file, 5), 0); /* the same file as the content */
    char *gone = file_join(dir, "d2");
    char id[STASH_ID_CHARS + 1];
    bool found = true;
    stash_id(s, "d", id);
    unit_succeeds(stash_link(s, id, 12, gone, &found));
    assert_false(found);
    assert_false(file_exists(gone));
    mem_free(gone);
    mem_free(file);
    mem_free(dir);
    stash_close(s);
}

static void one_process_at_a_part(void **state)
{
    (void)state;
    struct stash *a = open_stash(1000);
    struct stash *b = open_stash(1000);
    char id[STASH_ID_CHARS + 1];
    struct stash_part *mine;
    struct stash_part *other;
    stash_id(a, "part", id);
    unit_succeeds(stash_begin(a, id, 30, 3, &mine));
    unit_succeeds(stash_begin(b, id, 30, 3, &other));
    assert_null(other);
    unit_succeeds(disk_write_at(mine->fd, "0123456789", 10, 10));
    unit_succeeds(stash_piece_done(mine, 1));
    stash_leave(mine);
    unit_succeeds(stash_begin(b, id, 30, 3, &other));
    assert_false(stash_has_piece(other, 0));
    assert_true(stash_has_piece(other, 1));
    unit_succeeds(stash_restart(other));
    assert_false(stash_has_piece(other, 1));
    stash_leave(other);
    /* Of another size it begins anew. */
    unit_succeeds(stash_begin(b, id, 40, 4, &other));
    assert_int_equal(disk_size(other->fd), 40);
    stash_leave(other);
    stash_close(a);
    stash_close(b);
}

static void the_oldest_goes_what_is_used_stays(void **state)
{
    (void)state;
    struct stash *s = open_stash(30);
    char *dir;
    unit_succeeds(stash_model_dir(s, "m", &dir));
    stash_evict(s, 0);
    store(s, "used", "0123456789a");
    expect(s, "used", 11, dir, "0123456789a");
    store(s, "old", "0123456789b");
    store(s, "new", "0123456789c"); /* 33 bytes: one of the two that no model uses goes */
    expect(s, "new", 11, dir, "0123456789c");
    expect(s, "old", 11, dir, "");
    char *used = file_join(dir, "used");
    assert_true(file_exists(used));
    mem_free(used);
    mem_free(dir);
    stash_close(s);
}

static char *ref_path(const char *id)
{
    struct strbuf path = STRBUF_INIT;
    strbuf_printf(&path, "%s/refs/%s", root, id);
    return strbuf_take(&path);
}

/* Another process evicts between the two steps of a commit: the reference is written, its
 * content not there yet. */
static void a_reference_waits_for_its_content(void **state)
{
    (void)state;
    struct stash *mine = open_stash(1000);
    struct stash *other = open_stash(1000);
    struct stash_part *p;
    unsigned char sha[STASH_HASH_BYTES];
    char id[STASH_ID_CHARS + 1];
    char *dir;
    unit_succeeds(stash_model_dir(mine, "m", &dir));
    store(other, "evicted", "evicted");
    stash_id(mine, "late", id);
    unit_succeeds(stash_begin(mine, id, 4, 1, &p));
    unit_succeeds(disk_write_at(p->fd, "late", 4, 0));
    char *ref = ref_path(id);
    char *unfinished = mem_alloc(strlen(ref) + 8);
    memcpy(unfinished, ref, strlen(ref));
    memcpy(unfinished + strlen(ref), ".Xyz123", 8);
    unit_succeeds(disk_write(ref, "not there yet", 13));
    unit_succeeds(disk_write(unfinished, "", 0));
    stash_evict(other, 0);
    assert_true(file_exists(ref));
    assert_true(file_exists(unfinished));
    sha_of("late", sha);
    unit_succeeds(stash_commit(mine, p, sha));
    expect(mine, "late", 4, dir, "late");
    /* Nobody is at it any more: what leads nowhere goes, and leaves no part behind. */
    store(other, "evicted", "evicted");
    unit_succeeds(disk_write(ref, "nowhere", 7));
    stash_evict(other, 0);
    assert_false(file_exists(ref));
    assert_false(file_exists(unfinished));
    unit_succeeds(stash_begin(mine, id, 4, 1, &p));
    assert_non_null(p);
    stash_drop(p);
    mem_free(unfinished);
    mem_free(ref);
    mem_free(dir);
    stash_close(other);
    stash_close(mine);
}

#define MANY 400

static void store_again_and_again(void *arg)
{
    struct stash *s = arg;
    for (unsigned i = 0; i < MANY; i++) {
        char name[16];
        snprintf(name, sizeof(name), "other%u", i);
        store(s, name, "the same");
    }
}

/* Objects of one content arrive at the same time: each commit puts its own in the place of the
 * one before. */
static void the_same_content_twice_at_once(void **state)
{
    (void)state;
    struct stash *mine = open_stash(1000);
    struct stash *other = open_stash(1000);
    char *dir;
    unit_succeeds(stash_model_dir(mine, "m", &dir));
    store(mine, "one", "the same");
    struct thread *t;
    unit_succeeds(thread_start("other", store_again_and_again, other, &t));
    for (unsigned i = 0; i < MANY; i++) {
        char *to = file_join(dir, "one");
        unlink(to);
        mem_free(to);
        expect(mine, "one", 8, dir, "the same");
    }
    thread_join(t);
    mem_free(dir);
    stash_close(other);
    stash_close(mine);
}

static void what_a_dead_process_left_is_removed(void **state)
{
    (void)state;
    struct stash *s = open_stash(1000);
    struct strbuf left = STRBUF_INIT;
    strbuf_printf(&left, "%s/run/dead01/0/m", root);
    unit_succeeds(disk_make_dirs(strbuf_str(&left)));
    struct stash *again = open_stash(1000);
    assert_false(file_exists(strbuf_str(&left)));
    strbuf_fini(&left);
    char *dir; /* that of the first lives */
    unit_succeeds(stash_model_dir(s, "m", &dir));
    assert_true(file_is_dir(dir));
    mem_free(dir);
    stash_close(again);
    stash_close(s);
}

static void no_directory_of_others(void **state)
{
    (void)state;
    struct stash *s;
    unit_fails(stash_open("/proc", 1, &digest, &s),
               geteuid() == 0 ? STATUS_NOT_FOUND : STATUS_INVALID_ARG,
               "the cache of cloud repositories");
    s = open_stash(1000);
    char *dir;
    unit_fails(stash_model_dir(s, "..", &dir), STATUS_INVALID_ARG, "cannot be the name");
    unit_fails(stash_model_dir(s, "a/b", &dir), STATUS_INVALID_ARG, "cannot be the name");
    stash_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_and_gives),
        cmocka_unit_test(damage_is_seen),
        cmocka_unit_test(one_process_at_a_part),
        cmocka_unit_test(the_oldest_goes_what_is_used_stays),
        cmocka_unit_test(a_reference_waits_for_its_content),
        cmocka_unit_test(the_same_content_twice_at_once),
        cmocka_unit_test(what_a_dead_process_left_is_removed),
        cmocka_unit_test(no_directory_of_others),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
