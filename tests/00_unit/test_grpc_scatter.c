/* grpc/grpc_scatter with grpc/grpc_inbox: whatever frames a client sends, the message comes out
 * whole, and in place where the guess was right. */
#include "grpc/grpc_scatter.h"

#include "grpc/grpc_inbox.h"
#include "support/unit.h"

#include <stdlib.h>
#include <string.h>

static void guesses_equal_frames(void **state)
{
    (void)state;
    uint8_t to[100];
    uint8_t rest[10];
    struct grpc_scatter s;
    grpc_scatter_plan(&s, to, 100, 100, 30, 40, rest, sizeof(rest));
    assert_int_equal(s.count, 6);
    const struct iovec expected[] = {
        {to, 30}, {s.heads[1], 9}, {to + 30, 40}, {s.heads[2], 9}, {to + 70, 30}, {rest, 10},
    };
    assert_memory_equal(s.pieces, expected, sizeof(expected));
    assert_int_equal(grpc_scatter_rest(&s, 118), 0);
    assert_int_equal(grpc_scatter_rest(&s, 122), 4);
}

static void starts_with_a_head_between_frames(void **state)
{
    (void)state;
    uint8_t to[50];
    uint8_t rest[10];
    struct grpc_scatter s;
    grpc_scatter_plan(&s, to, 50, 50, 0, 40, rest, sizeof(rest));
    assert_int_equal(s.count, 5);
    assert_ptr_equal(s.pieces[0].iov_base, s.heads[0]);
    assert_ptr_equal(s.pieces[3].iov_base, to + 40);
    assert_int_equal(s.pieces[3].iov_len, 10);
}

/* Where the next frame may be another message's. */
static void guesses_no_further_than_it_may(void **state)
{
    (void)state;
    uint8_t to[50];
    uint8_t rest[10];
    struct grpc_scatter s;
    grpc_scatter_plan(&s, to, 50, 30, 30, 40, rest, sizeof(rest));
    const struct iovec expected[] = {{to, 30}, {rest, 10}};
    assert_int_equal(s.count, 1);
    assert_memory_equal(s.pieces, &expected[0], sizeof(expected[0]));
    assert_int_equal(grpc_scatter_rest(&s, 30), 0);
    grpc_scatter_plan(&s, to, 50, 0, 0, 40, rest, sizeof(rest));
    assert_int_equal(s.count, 1);
    assert_memory_equal(s.pieces, &expected[1], sizeof(expected[1]));
    assert_int_equal(grpc_scatter_check(&s, 10, 1), 10);
    assert_int_equal(grpc_scatter_rest(&s, 10), 10);
}

/* A header says the length of a whole frame, so a part of one cannot be guessed. */
static void guesses_whole_frames(void **state)
{
    (void)state;
    uint8_t to[200];
    uint8_t rest[10];
    struct grpc_scatter s;
    grpc_scatter_plan(&s, to, 200, 100, 30, 40, rest, sizeof(rest));
    const struct iovec expected[] = {{to, 30}, {s.heads[1], 9}, {to + 30, 40}};
    assert_int_equal(s.count, 3);
    assert_memory_equal(s.pieces, expected, sizeof(expected));
    grpc_scatter_plan(&s, to, 200, 20, 30, 40, rest, sizeof(rest));
    assert_int_equal(s.count, 1);
    assert_int_equal(s.pieces[0].iov_len, 20);
    grpc_scatter_plan(&s, to, 200, 39, 0, 40, rest, sizeof(rest));
    assert_int_equal(s.count, 1);
}

static void has_a_limit(void **state)
{
    (void)state;
    static uint8_t to[1000];
    uint8_t rest[10];
    struct grpc_scatter s;
    grpc_scatter_plan(&s, to, sizeof(to), sizeof(to), 0, 1, rest, sizeof(rest));
    assert_int_equal(s.count, 2 * GRPC_SCATTER_FRAMES);
    grpc_scatter_plan(&s, to, 64 << 20, 64 << 20, 0, GRPC_SCATTER_BYTES / 2, rest, sizeof(rest));
    assert_int_equal(s.count, 4);
}

/* The client's bytes: DATA frames of the message, with other frames between them. */
struct wire {
    uint8_t *bytes;
    size_t len;
    size_t at;
    const uint8_t *message; /* with its prefix */
    size_t message_len;
};

#define STREAM 5u

static void put_frame(struct wire *w, uint32_t stream, const uint8_t *from, uint32_t n)
{
    uint8_t *head = w->bytes + w->len;
    const uint8_t made[GRPC_SCATTER_HEAD] = {
        (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n, 0, 0, 0, 0, 0, (uint8_t)stream};
    memcpy(head, made, sizeof(made));
    if (from)
        memcpy(head + sizeof(made), from, n);
    else
        memset(head + sizeof(made), 'x', n);
    w->len += sizeof(made) + n;
}

/* odd: one frame in so many is of another stream, or of another size; 0 = none. */
static struct wire make_wire(uint64_t *random, const uint8_t *message, size_t len, unsigned odd)
{
    struct wire w = {.bytes = malloc(20 * len + 100000), .message = message, .message_len = len};
    size_t usual = (odd ? 1 : 1000) + (size_t)(unit_random(random) % 3000);
    for (size_t at = 0; at < len;) {
        if (odd && unit_random(random) % odd == 0)
            put_frame(&w, STREAM + 2, NULL, (uint32_t)(unit_random(random) % 100));
        size_t n = odd && unit_random(random) % odd == 0 ? 1 + (size_t)(unit_random(random) % 5000)
                                                         : usual;
        if (n > len - at)
            n = len - at;
        put_frame(&w, STREAM, message + at, (uint32_t)n);
        at += n;
    }
    return w;
}

/* What stands for the session: takes frames apart, feeds the inbox. */
struct taker {
    struct grpc_inbox in;
    uint8_t head[9];
    size_t head_got;
    uint32_t frame_left;
    uint32_t frame_bytes;
    bool data;
    bool whole;
    size_t moved;
};

static void take(struct taker *t, const uint8_t *bytes, size_t len)
{
    while (len > 0) {
        if (t->frame_left == 0) {
            size_t n = 9 - t->head_got < len ? 9 - t->head_got : len;
            memcpy(t->head + t->head_got, bytes, n);
            t->head_got += n;
            bytes += n;
            len -= n;
            if (t->head_got < 9)
                return;
            t->head_got = 0;
            t->data = t->head[8] == STREAM;
            t->frame_left = (uint32_t)t->head[0] << 16 | (uint32_t)t->head[1] << 8 | t->head[2];
            if (t->data)
                t->frame_bytes = t->frame_left;
            continue;
        }
        size_t n = t->frame_left < len ? t->frame_left : len;
        const uint8_t *at = bytes;
        size_t rest = n;
        if (t->data && grpc_inbox_place(&t->in) != at)
            t->moved += n;
        struct err *e = NULL;
        while (t->data && rest > 0 && !t->whole)
            t->whole = grpc_inbox_feed(&t->in, NULL, &at, &rest, GRPC_INBOX_MAX_BYTES, false, &e) ==
                       GRPC_INBOX_WHOLE;
        t->frame_left -= (uint32_t)n;
        bytes += n;
        len -= n;
    }
}

/* What readv does, with a socket that has some of the bytes. */
static size_t fill(struct wire *w, size_t n, const struct grpc_scatter *s)
{
    if (n > w->len - w->at)
        n = w->len - w->at;
    size_t left = n;
    for (uint32_t i = 0; i < s->count && left > 0; i++) {
        size_t here = s->pieces[i].iov_len < left ? s->pieces[i].iov_len : left;
        memcpy(s->pieces[i].iov_base, w->bytes + w->at, here);
        w->at += here;
        left -= here;
    }
    return n - left;
}

static size_t read_filling(struct wire *w, size_t n, size_t room, struct taker *t)
{
    uint8_t rest[500];
    struct grpc_scatter s;
    uint32_t frame_left = t->frame_left;
    grpc_scatter_plan(&s, grpc_inbox_place(&t->in), grpc_inbox_left(&t->in), room, frame_left,
                      t->frame_bytes, rest, sizeof(rest));
    size_t got = fill(w, n, &s);
    size_t good = grpc_scatter_check(&s, got, STREAM);
    uint8_t *moved = malloc(got - good + 1);
    grpc_scatter_copy(&s, good, got, moved);
    struct buf *hold = buf_ref(t->in.buf);
    size_t left = good;
    for (uint32_t i = 0; left > 0; i++) {
        size_t here = s.pieces[i].iov_len < left ? s.pieces[i].iov_len : left;
        take(t, s.pieces[i].iov_base, here);
        left -= here;
    }
    take(t, moved, got - good);
    buf_unref(hold);
    free(moved);
    return got;
}

/* room: the most that is planned at once. Returns how many bytes of the message were not read to
 * their place. */
static size_t run(uint64_t seed, unsigned odd, size_t room)
{
    uint64_t random = seed;
    uint32_t size = 20000 + (uint32_t)(unit_random(&random) % 100000);
    uint8_t *message = malloc(GRPC_PREFIX_BYTES + size);
    const uint8_t prefix[] = {0, 0, (uint8_t)(size >> 16), (uint8_t)(size >> 8), (uint8_t)size};
    memcpy(message, prefix, sizeof(prefix));
    for (uint32_t i = 0; i < size; i++)
        message[GRPC_PREFIX_BYTES + i] = (uint8_t)unit_random(&random);
    struct wire w = make_wire(&random, message, GRPC_PREFIX_BYTES + size, odd);
    struct taker t = {0};
    while (!t.whole) {
        size_t n = 1 + (size_t)(unit_random(&random) % 20000);
        if (grpc_inbox_place(&t.in) && t.data && t.head_got == 0) {
            assert_true(read_filling(&w, n, room, &t) > 0);
            continue;
        }
        uint8_t plain[2000];
        struct grpc_scatter s = {.pieces = {{plain, sizeof(plain)}}, .count = 1};
        size_t got = fill(&w, n, &s);
        assert_true(got > 0);
        take(&t, plain, got);
    }
    assert_int_equal(t.in.size, size);
    assert_memory_equal(t.in.data, message + GRPC_PREFIX_BYTES, size);
    grpc_inbox_next(&t.in);
    free(w.bytes);
    free(message);
    return t.moved;
}

static void any_frames(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 500; seed++)
        run(seed, 1 + (unsigned)(seed % 20), (size_t)(seed % 3 ? 1 + seed * 40 : SIZE_MAX));
}

/* But for the first bytes, before the message has a buffer, and those behind a head that was
 * read in two parts. */
static void regular_frames_need_no_copy(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 100; seed++)
        assert_in_range(run(seed, 0, SIZE_MAX), 0, 10000); /* of 20000 to 120000 */
}

/* The same where little is read at once. */
static void parts_of_regular_frames_need_no_copy(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 100; seed++)
        assert_in_range(run(seed, 0, 5000), 0, 10000);
}

UNIT_MAIN(UNIT(guesses_equal_frames), UNIT(starts_with_a_head_between_frames),
          UNIT(guesses_no_further_than_it_may), UNIT(guesses_whole_frames), UNIT(has_a_limit),
          UNIT(any_frames), UNIT(regular_frames_need_no_copy),
          UNIT(parts_of_regular_frames_need_no_copy))
