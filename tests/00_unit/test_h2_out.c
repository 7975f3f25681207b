/* grpc/h2_out: what is gathered comes out of the socket, whole and in order, and replies live
 * exactly as long as needed. */
#include "net/h2/h2_out.h"

#include "support/unit.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct rig {
    int ours;
    int theirs;
    struct h2_out out;
    struct h2_batch batch;
    uint8_t *expected;
    size_t expected_len;
    uint8_t *got;
    size_t got_len;
};

#define MOST ((size_t)64 << 20)

static struct rig *rig_new(void)
{
    struct rig *r = calloc(1, sizeof(*r));
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    r->ours = fds[0];
    r->theirs = fds[1];
    h2_out_init(&r->out);
    r->expected = malloc(MOST);
    r->got = malloc(MOST);
    return r;
}

static void take(struct rig *r)
{
    ssize_t n;
    while ((n = read(r->theirs, r->got + r->got_len, MOST - r->got_len)) > 0)
        r->got_len += (size_t)n;
}

static void rig_end(struct rig *r)
{
    while (h2_out_waits(&r->out)) {
        take(r);
        assert_true(h2_out_resume(&r->out, r->ours, NULL));
    }
    take(r);
    assert_int_equal(r->got_len, r->expected_len);
    assert_memory_equal(r->got, r->expected, r->got_len);
    assert_int_equal(r->out.written, r->out.queued);
    assert_null(r->out.sent);
    h2_out_fini(&r->out);
    close(r->ours);
    close(r->theirs);
    free(r->expected);
    free(r->got);
    free(r);
}

static void expect(struct rig *r, const void *data, size_t n)
{
    memcpy(r->expected + r->expected_len, data, n);
    r->expected_len += n;
}

/* A reply of pieces of given sizes, with random contents. */
struct test_reply {
    struct h2_reply reply;
    struct iovec pieces[8];
    bool *freed;
};

static void free_test_reply(struct h2_reply *reply)
{
    struct test_reply *t = (struct test_reply *)reply;
    for (uint32_t i = 0; i < reply->piece_count; i++) {
        memset(t->pieces[i].iov_base, 0xEE, t->pieces[i].iov_len);
        free(t->pieces[i].iov_base);
    }
    if (t->freed)
        *t->freed = true;
    free(t);
}

static struct test_reply *make(uint64_t *random, const size_t *sizes, uint32_t count, bool *freed)
{
    struct test_reply *t = calloc(1, sizeof(*t));
    for (uint32_t i = 0; i < count; i++) {
        uint8_t *bytes = malloc(sizes[i]);
        for (size_t k = 0; k < sizes[i]; k++)
            bytes[k] = (uint8_t)unit_random(random);
        t->pieces[i] = (struct iovec){bytes, sizes[i]};
        t->reply.left += sizes[i];
    }
    t->reply.pieces = t->pieces;
    t->reply.piece_count = count;
    t->reply.free_fn = free_test_reply;
    t->freed = freed;
    return t;
}

/* Writes a reply in frames of n bytes, each behind a header; waits for the reader whenever the
 * socket is full. */
static void write_framed(struct rig *r, struct test_reply *t, size_t n)
{
    for (uint32_t i = 0; i < t->reply.piece_count; i++)
        assert_true(t->pieces[i].iov_len > 0);
    size_t at = 0;
    uint32_t piece = 0;
    while (t->reply.left) {
        size_t frame = t->reply.left < n ? (size_t)t->reply.left : n;
        if (!h2_out_reply(&r->out, &r->batch, "frame-hdr", 9, &t->reply, frame)) {
            assert_true(r->batch.count > 0);
            assert_true(h2_out_write(&r->out, &r->batch, r->ours, NULL));
            while (h2_out_waits(&r->out)) {
                take(r);
                assert_true(h2_out_resume(&r->out, r->ours, NULL));
            }
            continue;
        }
        expect(r, "frame-hdr", 9);
        while (frame) {
            size_t here = t->pieces[piece].iov_len - at;
            if (here > frame)
                here = frame;
            expect(r, (const uint8_t *)t->pieces[piece].iov_base + at, here);
            frame -= here;
            at += here;
            if (at == t->pieces[piece].iov_len) {
                piece++;
                at = 0;
            }
        }
    }
    h2_out_retire(&r->out, &t->reply);
}

static void small_replies_are_copied(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    uint64_t random = 1;
    bool freed = false;
    struct test_reply *t = make(&random, (const size_t[]){100, 50}, 2, &freed);
    write_framed(r, t, 16384);
    assert_true(freed); /* before anything was written */
    assert_int_equal(r->batch.count, 1);
    assert_true(h2_out_write(&r->out, &r->batch, r->ours, NULL));
    assert_null(r->out.pieces);
    rig_end(r);
}

static void large_replies_live_until_they_are_written(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    uint64_t random = 2;
    bool freed = false;
    struct test_reply *t = make(&random, (const size_t[]){20, 8 << 20}, 2, &freed);
    t->freed = &freed;
    h2_out_copy(&r->out, &r->batch, "before", 6);
    expect(r, "before", 6);
    assert_true(h2_out_reply(&r->out, &r->batch, "h", 1, &t->reply, t->reply.left));
    expect(r, "h", 1);
    expect(r, t->pieces[0].iov_base, 20);
    expect(r, t->pieces[1].iov_base, 8 << 20);
    h2_out_retire(&r->out, &t->reply);
    assert_false(freed);
    assert_true(h2_out_write(&r->out, &r->batch, r->ours, NULL));
    assert_true(h2_out_waits(&r->out));
    assert_false(freed);
    memset(r->batch.bytes, 0, sizeof(r->batch.bytes)); /* the next connection's */
    while (h2_out_waits(&r->out)) {
        assert_false(freed);
        take(r);
        assert_true(h2_out_resume(&r->out, r->ours, NULL));
    }
    assert_true(freed);
    rig_end(r);
}

static void any_sizes_in_any_frames(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct rig *r = rig_new();
        uint64_t random = seed;
        int replies = 1 + (int)(unit_random(&random) % 20);
        for (int i = 0; i < replies; i++) {
            size_t sizes[8];
            uint32_t count = 1 + (uint32_t)(unit_random(&random) % 8);
            for (uint32_t k = 0; k < count; k++)
                sizes[k] = 1 + (size_t)(unit_random(&random) % (1u << (unit_random(&random) % 18)));
            size_t frame = 1000 + (size_t)(unit_random(&random) % 262144);
            write_framed(r, make(&random, sizes, count, NULL), frame);
        }
        if (r->batch.count)
            assert_true(h2_out_write(&r->out, &r->batch, r->ours, NULL));
        rig_end(r);
    }
}

static void a_broken_connection_frees_what_waits(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    uint64_t random = 3;
    bool freed = false;
    struct test_reply *t = make(&random, (const size_t[]){8 << 20}, 1, &freed);
    assert_true(h2_out_reply(&r->out, &r->batch, "h", 1, &t->reply, t->reply.left));
    h2_out_retire(&r->out, &t->reply);
    assert_true(h2_out_write(&r->out, &r->batch, r->ours, NULL));
    close(r->theirs);
    assert_false(h2_out_resume(&r->out, r->ours, NULL));
    assert_false(freed);
    h2_out_fini(&r->out);
    assert_true(freed);
    close(r->ours);
    free(r->expected);
    free(r->got);
    free(r);
}

UNIT_MAIN(UNIT(small_replies_are_copied), UNIT(large_replies_live_until_they_are_written),
          UNIT(any_sizes_in_any_frames), UNIT(a_broken_connection_frees_what_waits))
