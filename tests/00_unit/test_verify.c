/* cloud/verify: what a store says of a content, held against it. */
#include "cloud/verify.h"

#include "base/mem.h"
#include "base/strbuf.h"
#include "os/files/disk.h"
#include "os/files/tree.h"
#include "support/unit.h"
#include "cloud/web/cloud_abi.h"
#include "cloud/web/module.h"

#include <stdio.h>
#include <string.h>

#define MIB ((size_t)1 << 20)

static const struct cloud_abi *abi;
static char *root;

static void *begin(void)
{
    return abi->digest_new(CLOUD_ABI_SHA256);
}

static enum verify_result check(const char *data, size_t len, const char *digest)
{
    const struct stash_hash hash = {begin, abi->digest_add, abi->digest_end};
    struct stash *s;
    struct stash_part *p;
    char id[STASH_ID_CHARS + 1];
    unsigned char sha[STASH_HASH_BYTES];
    enum verify_result found;
    unit_succeeds(stash_open(root, 1000, &hash, &s));
    stash_id(s, digest, id);
    unit_succeeds(stash_begin(s, id, len, 1, &p));
    unit_succeeds(disk_write_at(p->fd, data, len, 0));
    unit_succeeds(verify_part(abi, p, digest, sha, &found));
    stash_leave(p);
    stash_close(s);
    return found;
}

static void digests(void **state)
{
    (void)state;
    static const struct {
        const char *digest;
        enum verify_result result;
    } cases[] = {
        {"", VERIFY_UNSURE},
        {"md5:5d41402abc4b2a76b9719d911017c592", VERIFY_SAME},
        {"md5:5d41402abc4b2a76b9719d911017c593", VERIFY_OTHER},
        {"crc32c:9a71bb4c", VERIFY_SAME},
        {"crc32c:9a71bb4d", VERIFY_OTHER},
        {"md5:5d41402abc4b2a76b9719d911017c592,crc32c:9a71bb4c", VERIFY_SAME},
        {"md5:5d41402abc4b2a76b9719d911017c592,crc32c:9a71bb4d", VERIFY_OTHER},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_int_equal(check("hello", 5, cases[i].digest), cases[i].result);
    assert_int_equal(verify_crc32c(0, "123456789", 9), 0xe3069283); /* the check value of CRC-32C */
    assert_int_equal(verify_crc32c(verify_crc32c(0, "1234", 4), "56789", 5), 0xe3069283);
}

static void md5_of(const char *data, size_t len, unsigned char out[16])
{
    void *d = abi->digest_new(CLOUD_ABI_MD5);
    abi->digest_add(d, data, len);
    abi->digest_end(d, out);
}

/* The tag of an upload in parts of this size. */
static char *tag_of_parts(const char *data, size_t len, size_t part)
{
    struct strbuf all = STRBUF_INIT;
    struct strbuf tag = STRBUF_INIT;
    unsigned char md5[16];
    size_t count = 0;
    for (size_t at = 0; at < len; at += part, count++) {
        md5_of(data + at, part < len - at ? part : len - at, md5);
        strbuf_append(&all, md5, sizeof(md5));
    }
    md5_of(all.data, all.len, md5);
    strbuf_puts(&tag, "md5parts:");
    for (size_t i = 0; i < sizeof(md5); i++)
        strbuf_printf(&tag, "%02x", md5[i]);
    strbuf_printf(&tag, "-%zu", count);
    strbuf_fini(&all);
    return strbuf_take(&tag);
}

static void uploads_in_parts(void **state)
{
    (void)state;
    size_t len = 11 * MIB + 7;
    char *data = mem_alloc(len);
    for (size_t i = 0; i < len; i++)
        data[i] = (char)(i * 7 + (i >> 12));
    static const struct {
        size_t part;
        enum verify_result result;
    } cases[] = {
        {5 * MIB, VERIFY_SAME}, {8 * MIB, VERIFY_SAME},  {6 * MIB, VERIFY_SAME},
        {MIB, VERIFY_SAME},     {32 * MIB, VERIFY_SAME}, {5 * MIB + 1, VERIFY_DOUBTED},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *tag = tag_of_parts(data, len, cases[i].part);
        assert_int_equal(check(data, len, tag), cases[i].result);
        data[5] ^= 1;
        assert_int_equal(check(data, len, tag), VERIFY_DOUBTED);
        data[5] ^= 1;
        mem_free(tag);
    }
    mem_free(data);
}

int main(void)
{
    struct err *e = module_get(&abi);
    if (!e)
        e = tree_make("test-verify", &root);
    if (e) {
        fprintf(stderr, "%s\n", err_message(e));
        err_free(e);
        return 1;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(digests),
                                       cmocka_unit_test(uploads_in_parts)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    tree_remove(root);
    mem_free(root);
    return failed;
}
