/* The process of an isolated model may say anything: whatever it is, the server lives, and each
 * request is answered once. */
#include "isolate/isolate_records.h"

#include "base/budget.h"
#include "base/mem.h"
#include "infer/request.h"
#include "infer/response.h"
#include "infer/stats.h"
#include "model/config.h"
#include "os/loop.h"
#include "os/packet.h"
#include "os/shm.h"
#include "os/thread.h"
#include "plugin/attribute.h"
#include "isolate/isolate_flight.h"
#include "isolate/isolate_priv.h"
#include "isolate/isolate_session.h"
#include "plugin/usage.h"
#include "support/test_version.h"
#include "support/unit.h"

#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#define REQUESTS 3u
#define ROUNDS   6000u

/* What became of one request. */
struct fate {
    unsigned finals;
    unsigned releases;
    unsigned ends;
    unsigned responses;
    uint64_t sum;     /* of all bytes of all outputs: they can be read */
    unsigned lent;    /* outputs that lie where the process can write */
    unsigned refused; /* responses with an error */
    size_t longest;   /* text of an error */
};

struct bench {
    struct isolate_session *session;
    struct model_config *config;
    struct request_target target;
    struct fate fates[REQUESTS];
    uint64_t ids[REQUESTS];
    uint64_t places[REQUESTS];
};

static unsigned ended;
static const struct isolate_session *watched;

static bool can_be_changed(const struct tensor_output *o)
{
    const uint8_t *at = o->data;
    return watched && at >= watched->out && at < watched->out + watched->shared_bytes;
}

static void unpin(struct request_target *target)
{
    (void)target;
    ended++;
}

static void respond(struct response *r, void *owner)
{
    struct fate *f = owner;
    f->finals += (r->flags & RESPONSE_FINAL) != 0;
    f->responses++;
    f->refused += r->error != NULL;
    f->longest = r->error ? strlen(err_message(r->error)) : 0;
    for (const struct tensor_output *o = r->outputs; o; o = o->next)
        f->lent += can_be_changed(o);
    for (const struct tensor_output *o = r->outputs; o; o = o->next)
        for (uint64_t i = 0; i < o->byte_size; i++)
            f->sum += ((const uint8_t *)o->data)[i];
    response_free(r);
}

static void released(struct request *r, void *owner)
{
    (void)r;
    ((struct fate *)owner)->releases++;
}

static void bench_init(struct bench *b)
{
    struct isolate_settings settings = {.memory_bytes = 1 << 20};
    *b = (struct bench){0};
    b->config = test_version_config("name: 'x' backend: 'y' max_batch_size: 0"
                                    " input { name: 'I' data_type: TYPE_FP32 dims: [ -1 ] }"
                                    " output { name: 'O' data_type: TYPE_FP32 dims: [ -1 ] }");
    b->target = (struct request_target){.config = b->config, .unpin = unpin};
    unit_succeeds(isolate_session_new("model 'x' version 1", "/bin/true", &settings, &b->session));
    spawn_reap(&b->session->process);
    b->session->stats = stats_new();
    b->session->most_rows = 8;
    watched = b->session;
}

static void bench_fini(struct bench *b)
{
    struct stats *stats = b->session->stats;
    isolate_session_unref(b->session);
    stats_free(stats);
    config_unref(b->config);
    assert_int_equal(budget_in_use(), 0);
}

/* New requests in flight, one with inputs in shared memory. */
static void bench_fly(struct bench *b)
{
    memset(b->fates, 0, sizeof(b->fates));
    b->session->flights.closed = false;
    for (unsigned i = 0; i < REQUESTS; i++) {
        uint64_t offset = 0;
        uint64_t bytes = i ? 0 : 5000;
        struct request *r = request_new(&b->target, NULL, respond, &b->fates[i]);
        r->released = released;
        r->with_backend = true;
        if (bytes)
            unit_succeeds(isolate_session_take(b->session, bytes, &offset));
        b->ids[i] = isolate_flight_add(b->session, r, offset, bytes, 0);
        b->places[i] = 0;
        assert_true(b->ids[i] != 0);
        isolate_flight_launch(b->session, b->ids[i]);
    }
}

static void bench_land(struct bench *b)
{
    struct err *e = err_new(STATUS_INTERNAL, "model 'x' version 1: its process ended");
    isolate_flight_fail_all(b->session, e);
    err_free(e);
    for (unsigned i = 0; i < REQUESTS; i++) {
        assert_int_equal(b->fates[i].finals, 1);
        assert_int_equal(b->fates[i].releases, 1);
    }
    assert_int_equal(isolate_flight_count(b->session), 0);
}

static size_t begin(struct strbuf *sb, struct bench *b, uint64_t kind, unsigned i)
{
    isolate_wire_put(sb, kind);
    size_t mark = sb->len;
    isolate_wire_put(sb, 0);
    if (kind >= RECORD_RESPONSE) {
        isolate_wire_put(sb, b->ids[i]);
        isolate_wire_put(sb, b->places[i]++);
    }
    return mark;
}

static void end(struct strbuf *sb, size_t mark)
{
    uint64_t len = sb->len - mark - sizeof(uint64_t);
    memcpy(sb->data + mark, &len, sizeof(len));
}

static void put_output(struct strbuf *sb, uint64_t place, uint64_t *seed)
{
    isolate_wire_put_text(sb, "O");
    isolate_wire_put(sb, DATATYPE_FP32);
    isolate_wire_put(sb, 1);
    isolate_wire_put(sb, 2);
    isolate_wire_put(sb, place);
    if (place == PLACE_INLINE)
        isolate_wire_put_bytes(sb, "eight by", 8);
    if (place == PLACE_SHARED) {
        isolate_wire_put(sb, unit_random(seed) % ISOLATE_SLOTS);
        isolate_wire_put(sb, unit_random(seed) % 16 * 4096);
        isolate_wire_put(sb, 8192);
    }
}

static void put_response(struct strbuf *sb, struct bench *b, unsigned i, uint64_t flags,
                         uint64_t *seed)
{
    size_t mark = begin(sb, b, RECORD_RESPONSE, i);
    isolate_wire_put(sb, flags);
    isolate_wire_put(sb, i == 2 ? STATUS_UNAVAILABLE + 1 : 0);
    if (i == 2)
        isolate_wire_put_text(sb, "not today");
    isolate_wire_put(sb, 2);
    isolate_wire_put_text(sb, "p");
    isolate_wire_put(sb, PARAM_STRING);
    isolate_wire_put_bytes(sb, "value", 5);
    isolate_wire_put_text(sb, "q");
    isolate_wire_put(sb, PARAM_DOUBLE);
    isolate_wire_put(sb, 42);
    isolate_wire_put(sb, 3);
    for (uint64_t place = PLACE_NONE; place <= PLACE_SHARED; place++)
        put_output(sb, place, seed);
    end(sb, mark);
}

static void put_plain(struct strbuf *sb, struct bench *b, uint64_t kind, unsigned i,
                      unsigned numbers)
{
    size_t mark = begin(sb, b, kind, i);
    for (unsigned k = 0; k < numbers; k++)
        isolate_wire_put(sb, k);
    end(sb, mark);
}

/* What a good process says about one request. */
static void put_story(struct strbuf *sb, struct bench *b, unsigned i, uint64_t *seed)
{
    put_plain(sb, b, RECORD_BATCH, i, 5);
    put_response(sb, b, i, 0, seed);
    put_plain(sb, b, RECORD_STATISTICS, i, 5);
    put_response(sb, b, i, RESPONSE_FINAL, seed);
    put_plain(sb, b, RECORD_RESPONSE_STATISTICS, i, 5);
    put_plain(sb, b, RECORD_RELEASE, i, 0);
    put_plain(sb, b, RECORD_GONE, i, 0);
}

static void a_good_story(void **state)
{
    (void)state;
    struct bench b;
    uint64_t seed = 1;
    bench_init(&b);
    bench_fly(&b);
    struct strbuf sb = STRBUF_INIT;
    for (unsigned i = 0; i < REQUESTS; i++)
        put_story(&sb, &b, i, &seed);
    memset(b.session->out + ISOLATE_SLOTS, 1, 100000);
    assert_true(isolate_records_apply(b.session, sb.data, sb.len, NULL));
    assert_int_equal(isolate_flight_count(b.session), 0);
    assert_int_equal(b.fates[0].responses, 2);
    assert_true(b.fates[0].sum > 2u * 8192u);
    bench_land(&b);
    strbuf_fini(&sb);
    bench_fini(&b);
}

/* Records about a request take effect in their own order, whichever comes first. */
static void records_out_of_order(void **state)
{
    (void)state;
    struct bench b;
    uint64_t seed = 1;
    bench_init(&b);
    bench_fly(&b);
    struct strbuf first = STRBUF_INIT;
    struct strbuf rest = STRBUF_INIT;
    put_response(&first, &b, 0, 0, &seed);
    put_response(&rest, &b, 0, RESPONSE_FINAL, &seed);
    put_plain(&rest, &b, RECORD_RELEASE, 0, 0);
    put_plain(&rest, &b, RECORD_GONE, 0, 0);
    assert_true(isolate_records_apply(b.session, rest.data, rest.len, NULL));
    assert_int_equal(b.fates[0].responses, 0);
    assert_true(isolate_records_apply(b.session, first.data, first.len, NULL));
    assert_int_equal(b.fates[0].responses, 2);
    assert_int_equal(b.fates[0].releases, 1);
    assert_int_equal(isolate_flight_count(b.session), REQUESTS - 1);
    bench_land(&b);
    strbuf_fini(&first);
    strbuf_fini(&rest);
    bench_fini(&b);
}

/* A time-out answers; what the process says afterwards is not heard, what it lent goes back. */
static void late_records(void **state)
{
    (void)state;
    struct bench b;
    uint64_t seed = 1;
    bench_init(&b);
    bench_fly(&b);
    struct strbuf cancelled = STRBUF_INIT;
    struct request *r = request_new(&b.target, NULL, respond, &b.fates[1]);
    r->queue_deadline = 100;
    b.ids[2] = isolate_flight_add(b.session, r, 0, 0, 50);
    isolate_flight_tick(b.session, 100, &cancelled); /* not while its sender looks at it */
    assert_int_equal(b.fates[1].finals, 0);
    isolate_flight_launch(b.session, b.ids[2]);
    b.places[2] = 0;
    isolate_flight_tick(b.session, 99, &cancelled);
    assert_int_equal(b.fates[1].finals, 0);
    isolate_flight_tick(b.session, 100, &cancelled);
    assert_int_equal(b.fates[1].finals, 1);
    struct strbuf sb = STRBUF_INIT;
    memset(b.session->out, 0, ISOLATE_SLOTS);
    put_story(&sb, &b, 2, &seed);
    assert_true(isolate_records_apply(b.session, sb.data, sb.len, NULL));
    assert_int_equal(b.fates[1].responses, 1);
    unsigned back = 0;
    for (unsigned i = 0; i < ISOLATE_SLOTS; i++)
        back += b.session->out[i];
    assert_int_equal(back, 2);
    b.fates[1].finals = 0;
    bench_land(&b);
    strbuf_fini(&sb);
    strbuf_fini(&cancelled);
    bench_fini(&b);
}

/* Good stories with numbers changed, parts repeated, left out, cut off. */
static void spoil(struct strbuf *sb, uint64_t *seed)
{
    unsigned times = (unsigned)(unit_random(seed) % 4);
    while (times--) {
        size_t at = (size_t)(unit_random(seed) % sb->len);
        switch (unit_random(seed) % 5) {
        case 0:
            sb->data[at] ^= (char)(1u << (unit_random(seed) % 8));
            break;
        case 1: /* a number of the sort that overflows */
            at &= ~(size_t)7;
            uint64_t n = unit_random(seed) % 3 ? UINT64_MAX >> (unit_random(seed) % 40)
                                               : unit_random(seed) % 64;
            if (at + sizeof(n) <= sb->len)
                memcpy(sb->data + at, &n, sizeof(n));
            break;
        case 2:
            sb->len = at ? at : 1;
            break;
        case 3: {
            size_t more = (size_t)(unit_random(seed) % (sb->len - at));
            strbuf_reserve(sb, more + 1);
            strbuf_append(sb, sb->data + at, more);
            break;
        }
        default:
            memmove(sb->data + at, sb->data + at + (sb->len - at) / 2, (sb->len - at) / 2);
            break;
        }
    }
}

static void nonsense(void **state)
{
    (void)state;
    struct bench b;
    uint64_t seed = 20;
    unsigned refused = 0;
    bench_init(&b);
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct attribute attributes;
        struct usage usage;
        char *config = NULL;
        int policy;
        attribute_init(&attributes);
        usage_init(&usage);
        struct isolate_reply reply = {
            .attributes = &attributes, .policy = &policy, .config = &config, .usage = &usage};
        struct strbuf sb = STRBUF_INIT;
        bench_fly(&b);
        for (unsigned i = 0; i < REQUESTS; i++)
            put_story(&sb, &b, (i + round) % REQUESTS, &seed);
        put_plain(&sb, &b, RECORD_ATTRIBUTES, 0, 8);
        put_plain(&sb, &b, RECORD_CONFIG, 0, 1);
        put_plain(&sb, &b, RECORD_USAGE, 0, 4);
        put_plain(&sb, &b, RECORD_DONE, 0, 3);
        spoil(&sb, &seed);
        uint8_t *exact = mem_alloc_aligned(sb.len, 64); /* so that a sanitizer sees its end */
        memcpy(exact, sb.data, sb.len);
        refused += !isolate_records_apply(b.session, exact, sb.len, round % 2 ? &reply : NULL);
        bench_land(&b);
        mem_free(exact);
        strbuf_fini(&sb);
        err_free(reply.err);
        mem_free(config);
        usage_fini(&usage);
    }
    assert_true(refused > ROUNDS / 10);
    bench_fini(&b);
}

/* Every place of shared memory that makes no sense is refused. */
static void outputs_outside(void **state)
{
    (void)state;
    struct bench b;
    bool bad;
    bench_init(&b);
    uint64_t most = b.session->shared_bytes;
    const uint64_t places[][3] = {
        {ISOLATE_SLOTS, 0, 64},    {UINT64_MAX, 0, 64}, {0, most, 64},      {0, most - 64, 128},
        {0, UINT64_MAX - 63, 128}, {0, 0, most + 1},    {0, 0, UINT64_MAX}, {0, 1, 64},
        {0, 64, UINT64_MAX - 32},
    };
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        assert_null(
            isolate_session_output(b.session, places[i][0], places[i][1], places[i][2], &bad));
        assert_true(bad);
        assert_false(
            isolate_session_drop_output(b.session, places[i][0], places[i][1], places[i][2]));
    }
    struct buf *good = isolate_session_output(b.session, ISOLATE_SLOTS - 1, most - 64, 64, &bad);
    assert_non_null(good);
    assert_int_equal(b.session->out[ISOLATE_SLOTS - 1], 0);
    buf_unref(good);
    assert_int_equal(b.session->out[ISOLATE_SLOTS - 1], 1);
    assert_true(shm_sealed(b.session->in_fd, most));
    assert_true(shm_sealed(b.session->out_fd, most + ISOLATE_SLOTS));
    assert_false(shm_sealed(b.session->out_fd, 2 * most));
    bench_fini(&b);
}

static void put_shared(struct strbuf *sb, struct bench *b, unsigned i, enum datatype datatype)
{
    size_t mark = begin(sb, b, RECORD_RESPONSE, i);
    isolate_wire_put(sb, 0);
    isolate_wire_put(sb, 0);
    isolate_wire_put(sb, 0);
    isolate_wire_put(sb, 1);
    isolate_wire_put_text(sb, "O");
    isolate_wire_put(sb, datatype);
    isolate_wire_put(sb, 1);
    isolate_wire_put(sb, 2);
    isolate_wire_put(sb, PLACE_SHARED);
    isolate_wire_put(sb, i);
    isolate_wire_put(sb, 0);
    isolate_wire_put(sb, 8192);
    end(sb, mark);
}

/* What somebody looks at twice is out of the reach of the process: strings, and what the step of
 * an ensemble computes with. */
static void what_is_read_twice_is_copied(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b);
    bench_fly(&b);
    struct request *outer = request_new(&b.target, NULL, respond, &b.fates[2]);
    struct request *step = request_new(&b.target, NULL, respond, &b.fates[2]);
    step->released = outer->released = released;
    step->with_backend = true;
    step->parent = request_ref(outer);
    b.ids[2] = isolate_flight_add(b.session, step, 0, 0, 0);
    b.places[2] = 0;
    isolate_flight_launch(b.session, b.ids[2]);
    struct strbuf sb = STRBUF_INIT;
    put_shared(&sb, &b, 0, DATATYPE_FP32);
    put_shared(&sb, &b, 1, DATATYPE_BYTES);
    put_shared(&sb, &b, 2, DATATYPE_FP32);
    assert_true(isolate_records_apply(b.session, sb.data, sb.len, NULL));
    assert_int_equal(b.fates[0].responses + b.fates[1].responses + b.fates[2].responses, 3);
    assert_int_equal(b.fates[0].lent, 1);
    assert_int_equal(b.fates[1].lent, 0);
    assert_int_equal(b.fates[2].lent, 0);
    struct err *e = err_new(STATUS_INTERNAL, "over");
    isolate_flight_fail_all(b.session, e);
    err_free(e);
    request_unref(outer);
    strbuf_fini(&sb);
    bench_fini(&b);
}

/* A request that fills a gap of a batch counts neither as a success nor as a failure. */
static void gaps_do_not_count(void **state)
{
    (void)state;
    struct bench b;
    struct stats_sums sums;
    bench_init(&b);
    bench_fly(&b);
    struct strbuf sb = STRBUF_INIT;
    for (unsigned i = 0; i < 2; i++) {
        struct request *gap = request_new(&b.target, NULL, respond, &b.fates[i]);
        gap->released = released;
        gap->with_backend = gap->gap = true;
        b.ids[i] = isolate_flight_add(b.session, gap, 0, 0, 0);
        b.places[i] = 0;
        isolate_flight_launch(b.session, b.ids[i]);
    }
    put_plain(&sb, &b, RECORD_STATISTICS, 0, 5); /* a failure, says the first number */
    sb.data[32] = 1;                             /* a success */
    put_plain(&sb, &b, RECORD_STATISTICS, 1, 5);
    assert_true(isolate_records_apply(b.session, sb.data, sb.len, NULL));
    struct err *e = err_new(STATUS_INTERNAL, "over");
    isolate_flight_fail(b.session, b.ids[0], e);
    isolate_flight_fail(b.session, b.ids[1], e);
    stats_sum(b.session->stats, &sums);
    assert_int_equal(sums.success.count, 0);
    assert_int_equal(sums.fail.count, 0);
    isolate_flight_fail_all(b.session, e);
    err_free(e);
    strbuf_fini(&sb);
    bench_fini(&b);
}

/* Records that wait for one that never comes: the process makes the server hold its share of the
 * budget, not more. */
static void what_waits_has_a_limit(void **state)
{
    (void)state;
    struct bench b;
    budget_set_limit((size_t)64 << 20);
    bench_init(&b);
    bench_fly(&b);
    size_t len = (size_t)1 << 20;
    struct strbuf sb = STRBUF_INIT;
    b.places[0] = 1; /* the one before them is missing */
    size_t mark = begin(&sb, &b, RECORD_FLAGS, 0);
    memset(strbuf_reserve(&sb, len), 0, len);
    sb.len += len;
    end(&sb, mark);
    unsigned held = 0;
    while (held < 100) {
        assert_true(isolate_records_apply(b.session, sb.data, sb.len, NULL));
        if (b.fates[0].finals)
            break;
        held++;
        assert_true(budget_in_use() + ISOLATE_QUOTA_FREE >= held * len);
    }
    assert_int_equal(b.fates[0].refused, 1);
    assert_true(held >= 3 && held <= 8);
    assert_true(budget_in_use() <= 8192); /* inputs of the others */
    struct err *e = err_new(STATUS_INTERNAL, "over");
    assert_int_equal(isolate_flight_fail_all(b.session, e), 2);
    err_free(e);
    strbuf_fini(&sb);
    bench_fini(&b);
    budget_set_limit(SIZE_MAX);
}

/* A message that is announced and does not come is held within the share, too. */
static void long_messages_have_a_limit(void **state)
{
    (void)state;
    struct bench b;
    int pair[2];
    struct isolate_frame f;
    const uint8_t *bytes;
    size_t len;
    budget_set_limit((size_t)64 << 20);
    bench_init(&b);
    unit_succeeds(packet_pair(pair));
    uint64_t head[2] = {(uint64_t)60 << 20, 0};
    struct iovec piece = {head, sizeof(head)};
    isolate_frame_init(&f, &b.session->quota);
    assert_true(packet_send(pair[0], &piece, 1, NULL, 0, false));
    assert_int_equal(isolate_frame_receive(&f, pair[1], false, false, &bytes, &len),
                     ISOLATE_FRAME_BAD);
    head[0] = (uint64_t)2 << 20;
    assert_true(packet_send(pair[0], &piece, 1, NULL, 0, false));
    assert_int_equal(isolate_frame_receive(&f, pair[1], false, false, &bytes, &len),
                     ISOLATE_FRAME_NONE);
    assert_int_equal(budget_in_use(), head[0] - ISOLATE_QUOTA_FREE);
    isolate_frame_fini(&f);
    assert_int_equal(budget_in_use(), 0);
    packet_close(pair[0]);
    packet_close(pair[1]);
    bench_fini(&b);
    budget_set_limit(SIZE_MAX);
}

/* Parameters of a response are charged while it is held; the text of an error is cut. */
static void responses_are_charged(void **state)
{
    (void)state;
    struct bench b;
    size_t len = (size_t)1 << 20;
    char *text = mem_zalloc(len + 1);
    memset(text, 'x', len);
    bench_init(&b);
    for (unsigned round = 0; round < 2; round++) {
        budget_set_limit(round ? len / 2 : 4 * len);
        bench_fly(&b);
        struct strbuf sb = STRBUF_INIT;
        size_t mark = begin(&sb, &b, RECORD_RESPONSE, 0);
        isolate_wire_put(&sb, RESPONSE_FINAL);
        isolate_wire_put(&sb, 0);
        isolate_wire_put(&sb, 1);
        isolate_wire_put_text(&sb, "p");
        isolate_wire_put(&sb, PARAM_STRING);
        isolate_wire_put_bytes(&sb, text, len);
        isolate_wire_put(&sb, 0);
        end(&sb, mark);
        mark = begin(&sb, &b, RECORD_RESPONSE, 1);
        isolate_wire_put(&sb, RESPONSE_FINAL);
        isolate_wire_put(&sb, STATUS_INTERNAL + 1);
        isolate_wire_put_text(&sb, text);
        isolate_wire_put(&sb, 0);
        isolate_wire_put(&sb, 0);
        end(&sb, mark);
        assert_true(isolate_records_apply(b.session, sb.data, sb.len, NULL));
        assert_int_equal(b.fates[0].refused, round);
        assert_int_equal(b.fates[1].refused, 1);
        assert_true(b.fates[1].longest < 40000);
        bench_land(&b);
        strbuf_fini(&sb);
    }
    mem_free(text);
    bench_fini(&b);
    budget_set_limit(SIZE_MAX);
}

/* The batch that a request is of may hold its responses: a model that is not decoupled makes a
 * few of them at most. */
static void responses_have_a_limit(void **state)
{
    (void)state;
    struct bench b;
    uint64_t seed = 1;
    bench_init(&b);
    for (unsigned round = 0; round < 2; round++) {
        b.config->decoupled = round == 1;
        bench_fly(&b);
        struct strbuf sb = STRBUF_INIT;
        for (unsigned i = 0; i < 100; i++) {
            put_response(&sb, &b, 0, 0, &seed);
            put_plain(&sb, &b, RECORD_FLAGS, 0, 1);
        }
        put_response(&sb, &b, 0, RESPONSE_FINAL, &seed);
        assert_true(isolate_records_apply(b.session, sb.data, sb.len, NULL));
        assert_int_equal(b.fates[0].responses, round ? 201 : 3);
        assert_int_equal(b.fates[0].finals, 1);
        bench_land(&b);
        strbuf_fini(&sb);
    }
    bench_fini(&b);
}

#define AHEAD_BYTES 16384u
#define MOST_AHEAD  64u
#define STREAMED    1000u

static atomic_size_t most_waiting;

static void respond_on_loop(struct response *r, void *owner)
{
    size_t now = budget_in_use();
    if (now > atomic_load(&most_waiting))
        atomic_store(&most_waiting, now);
    respond(r, owner);
}

/* The loop is busy until all that may wait for it does. */
static void keep_busy(struct mail *m)
{
    (void)m;
    while (budget_in_use() < MOST_AHEAD * AHEAD_BYTES)
        sched_yield();
}

static void run_it(void *loop)
{
    loop_run(loop);
}

static struct loop *ending;

/* Comes after all that was posted before. */
static void end_it(struct mail *m)
{
    (void)m;
    loop_stop(ending);
}

/* However fast a process says responses of a decoupled model, few of them wait for the loop that
 * they are for. */
static void responses_keep_the_pace_of_their_loop(void **state)
{
    (void)state;
    struct mail end_of_loop = {.deliver = end_it};
    struct bench b;
    struct loop *loop;
    struct thread *thread;
    struct mail busy = {.deliver = keep_busy};
    char *text = mem_zalloc(AHEAD_BYTES);
    bench_init(&b);
    b.config->decoupled = true;
    bench_fly(&b);
    unit_succeeds(loop_new(&loop));
    struct request *r = request_new(&b.target, loop, respond_on_loop, &b.fates[0]);
    r->released = released;
    r->with_backend = true;
    uint64_t others = b.ids[0];
    b.ids[0] = isolate_flight_add(b.session, r, 0, 0, 0);
    isolate_flight_launch(b.session, b.ids[0]);
    loop_post(loop, &busy, &busy);
    unit_succeeds(thread_start("loop", run_it, loop, &thread));
    for (unsigned i = 0; i < STREAMED; i++) {
        struct strbuf sb = STRBUF_INIT;
        size_t mark = begin(&sb, &b, RECORD_RESPONSE, 0);
        isolate_wire_put(&sb, i + 1 == STREAMED ? RESPONSE_FINAL : 0);
        isolate_wire_put(&sb, 0);
        isolate_wire_put(&sb, 1);
        isolate_wire_put_text(&sb, "p");
        isolate_wire_put(&sb, PARAM_BYTES);
        isolate_wire_put_bytes(&sb, text, AHEAD_BYTES - 112);
        isolate_wire_put(&sb, 0);
        end(&sb, mark);
        assert_true(isolate_records_apply(b.session, sb.data, sb.len, NULL));
        strbuf_fini(&sb);
    }
    struct err *e = err_new(STATUS_INTERNAL, "over");
    isolate_flight_fail(b.session, b.ids[0], e);
    ending = loop;
    loop_post(loop, &end_of_loop, &end_of_loop);
    thread_join(thread);
    assert_int_equal(b.fates[0].responses, STREAMED);
    assert_true(atomic_load(&most_waiting) <= (MOST_AHEAD + 2) * AHEAD_BYTES + 8192);
    b.ids[0] = others;
    isolate_flight_fail_all(b.session, e);
    err_free(e);
    loop_free(loop);
    mem_free(text);
    bench_fini(&b);
}

/* Each size of batches that is counted takes memory: a process may not name as many as it likes. */
static void sizes_of_batches_have_a_limit(void **state)
{
    (void)state;
    struct bench b;
    struct stats_batch_sums *sizes;
    bench_init(&b);
    for (uint64_t rows = 1; rows < 5000; rows++) {
        struct strbuf sb = STRBUF_INIT;
        size_t mark = begin(&sb, &b, RECORD_BATCH, 0);
        isolate_wire_put(&sb, rows);
        for (unsigned k = 0; k < 4; k++)
            isolate_wire_put(&sb, k);
        end(&sb, mark);
        assert_true(isolate_records_apply(b.session, sb.data, sb.len, NULL));
        strbuf_fini(&sb);
    }
    assert_int_equal(stats_sum_batches(b.session->stats, &sizes), 8);
    mem_free(sizes);
    bench_fini(&b);
}

UNIT_MAIN(UNIT(a_good_story), UNIT(records_out_of_order), UNIT(late_records), UNIT(nonsense),
          UNIT(outputs_outside), UNIT(what_is_read_twice_is_copied), UNIT(gaps_do_not_count),
          UNIT(what_waits_has_a_limit), UNIT(long_messages_have_a_limit),
          UNIT(responses_are_charged), UNIT(sizes_of_batches_have_a_limit),
          UNIT(responses_have_a_limit), UNIT(responses_keep_the_pace_of_their_loop))
