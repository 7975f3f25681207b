#include "batching/batcher.h"

#include "support/fake_request.h"
#include "support/unit.h"

#include <string.h>

#define MAX   64
#define START TIME_S(10)

struct rig {
    struct batcher *batcher;
    struct request *requests[MAX];
    int count;
    struct request *out[MAX];
    time_ns wake;
};

static struct rig *rig_new(const struct batcher_config *config)
{
    static struct rig rig;
    rig = (struct rig){0};
    unit_succeeds(batcher_new(config, &rig.batcher));
    return &rig;
}

static void rig_end(struct rig *rig)
{
    struct list rest;
    list_init(&rest);
    batcher_drain(rig->batcher, &rest);
    batcher_free(rig->batcher);
    for (int i = 0; i < rig->count; i++)
        fake_request_free(rig->requests[i]);
}

static struct request *make(struct rig *rig, uint32_t rows, int64_t dim)
{
    const int64_t shape[] = {rows, dim};
    struct request *r = fake_request_new(rows);
    fake_request_input(r, "a", shape, 2, NULL, 0);
    rig->requests[rig->count++] = r;
    return r;
}

static struct request *push(struct rig *rig, time_ns at, uint32_t rows)
{
    struct request *r = make(rig, rows, 4);
    assert_int_equal(batcher_push(rig->batcher, at, r), BATCHER_PUSH_OK);
    return r;
}

static void push_many(struct rig *rig, time_ns at, int n)
{
    while (n--)
        push(rig, at, 1);
}

/* The number of requests taken; they are done with at once. */
static size_t take(struct rig *rig, time_ns at)
{
    return batcher_take(rig->batcher, at, rig->out, MAX, &rig->wake);
}

static size_t expired(struct rig *rig, time_ns at)
{
    struct list list;
    list_init(&list);
    return batcher_expire(rig->batcher, at, &list);
}

static const int32_t four_and_eight[] = {4, 8};

static struct batcher_config preferring_4_8(uint64_t delay_us)
{
    return (struct batcher_config){.dynamic = true,
                                   .max_batch_size = 16,
                                   .preferred = four_and_eight,
                                   .preferred_count = 2,
                                   .delay_us = delay_us};
}

/* MC-94, PB-174: without a scheduler setting each request runs alone, in order, on whichever
 * instance asks. */
static void default_scheduler_runs_each_alone(void **state)
{
    (void)state;
    struct batcher_config c = {.max_batch_size = 8, .delay_us = 1000};
    struct rig *rig = rig_new(&c);
    assert_int_equal(batcher_slots(rig->batcher), 1);
    assert_int_equal(take(rig, START), 0);
    assert_true(rig->wake == TIME_NEVER);
    push_many(rig, START, 3);
    assert_int_equal(batcher_depth(rig->batcher), 3);
    for (int i = 0; i < 3; i++) {
        assert_true(batcher_ready(rig->batcher, START, &rig->wake));
        assert_int_equal(take(rig, START), 1);
        assert_ptr_equal(rig->out[0], rig->requests[i]);
    }
    assert_false(batcher_ready(rig->batcher, START, &rig->wake));
    assert_true(rig->wake == TIME_NEVER);
    rig_end(rig);
}

/* MC-101, MC-103, MC-104, PB-94: of the preferred sizes that can be made the largest is made, in
 * order. */
static void largest_preferred_size(void **state)
{
    (void)state;
    struct batcher_config c = preferring_4_8(0);
    struct rig *rig = rig_new(&c);
    push_many(rig, START, 10);
    assert_int_equal(take(rig, START), 8);
    for (int i = 0; i < 8; i++)
        assert_ptr_equal(rig->out[i], rig->requests[i]);
    push_many(rig, START, 3);
    assert_int_equal(take(rig, START), 4);
    rig_end(rig);
}

/* MC-105, X-21: when none can be made, the largest batch up to the model's maximum. */
static void largest_possible_otherwise(void **state)
{
    (void)state;
    struct batcher_config c = preferring_4_8(0);
    struct rig *rig = rig_new(&c);
    push_many(rig, START, 3);
    assert_int_equal(take(rig, START), 3);
    /* Sums 3, 6, 9, 12, 15 meet no preferred size; a sixth would be over the maximum. */
    for (int i = 0; i < 6; i++)
        push(rig, START, 3);
    assert_int_equal(take(rig, START), 5);
    rig_end(rig);
    /* A full batch is one, too. */
    c = (struct batcher_config){.dynamic = true, .max_batch_size = 4};
    rig = rig_new(&c);
    push_many(rig, START, 6);
    assert_int_equal(take(rig, START), 4);
    assert_int_equal(take(rig, START), 2);
    rig_end(rig);
}

/* MC-106, MC-108, MC-109, MC-111, MC-112, PB-96: the wait is counted from the oldest request,
 * then what is there goes. */
static void delay_is_counted_from_the_oldest(void **state)
{
    (void)state;
    struct batcher_config c = preferring_4_8(100);
    struct rig *rig = rig_new(&c);
    push(rig, START, 1);
    assert_int_equal(take(rig, START), 0);
    assert_true(rig->wake == START + TIME_US(100));
    push(rig, START + TIME_US(60), 1);
    assert_int_equal(take(rig, START + TIME_US(99)), 0);
    assert_true(rig->wake == START + TIME_US(100));
    assert_int_equal(take(rig, START + TIME_US(100)), 2);
    rig_end(rig);
}

/* MC-110, PB-94: the request that completes a preferred size ends the wait. */
static void completed_size_goes_at_once(void **state)
{
    (void)state;
    struct batcher_config c = preferring_4_8(100);
    struct rig *rig = rig_new(&c);
    push_many(rig, START, 3);
    assert_false(batcher_ready(rig->batcher, START, &rig->wake));
    assert_true(rig->wake == START + TIME_US(100));
    push(rig, START + TIME_US(10), 1);
    assert_true(batcher_ready(rig->batcher, START + TIME_US(10), &rig->wake));
    assert_int_equal(take(rig, START + TIME_US(10)), 4);
    rig_end(rig);
}

/* MC-104, MC-113: a preferred size does not wait for a larger one; the larger one is made beyond
 * the delay as well. */
static void smaller_preferred_does_not_wait(void **state)
{
    (void)state;
    struct batcher_config c = preferring_4_8(100);
    struct rig *rig = rig_new(&c);
    push_many(rig, START, 4);
    assert_int_equal(take(rig, START), 4);
    push_many(rig, START, 10);
    assert_int_equal(take(rig, START + TIME_MS(5)), 8);
    assert_int_equal(take(rig, START + TIME_MS(5)), 2);
    rig_end(rig);
}

/* A batch that can only move away from the preferred sizes has nothing to wait for. */
static void past_all_preferred_sizes(void **state)
{
    (void)state;
    struct batcher_config c = preferring_4_8(100);
    struct rig *rig = rig_new(&c);
    push(rig, START, 9);
    assert_int_equal(take(rig, START), 1);
    rig_end(rig);
}

/* PB-95, X-32: no preferred size given means the model's maximum. */
static void preferred_size_by_default(void **state)
{
    (void)state;
    struct batcher_config c = {.dynamic = true, .max_batch_size = 4, .delay_us = 100};
    struct rig *rig = rig_new(&c);
    push_many(rig, START, 3);
    assert_int_equal(take(rig, START), 0);
    push(rig, START, 1);
    assert_int_equal(take(rig, START), 4);
    rig_end(rig);
}

/* Requests of different shapes never share a batch, and do not wait for each other. */
static void shapes_part_batches(void **state)
{
    (void)state;
    struct batcher_config c = preferring_4_8(100);
    struct rig *rig = rig_new(&c);
    push_many(rig, START, 2);
    struct request *other = make(rig, 1, 8);
    assert_int_equal(batcher_push(rig->batcher, START, other), BATCHER_PUSH_OK);
    push(rig, START, 1);
    assert_int_equal(take(rig, START), 2);
    assert_int_equal(take(rig, START), 1);
    assert_ptr_equal(rig->out[0], other);
    assert_int_equal(take(rig, START), 0);
    rig_end(rig);
}

static struct batcher_config levels(uint64_t count, uint64_t default_level)
{
    return (struct batcher_config){.dynamic = true,
                                   .max_batch_size = 2,
                                   .priority_levels = count,
                                   .default_level = default_level};
}

static struct request *push_at(struct rig *rig, uint64_t priority)
{
    struct request *r = make(rig, 1, 4);
    r->priority = priority;
    assert_int_equal(batcher_push(rig->batcher, START, r), BATCHER_PUSH_OK);
    return r;
}

/* MC-116, MC-117, MC-118, PB-99, PB-100: level 1 first, order of arrival within one, the default
 * for those without. */
static void priority_levels(void **state)
{
    (void)state;
    struct batcher_config c = levels(3, 2);
    struct rig *rig = rig_new(&c);
    struct request *low = push_at(rig, 3);
    struct request *unset = push_at(rig, 0);
    struct request *high = push_at(rig, 1);
    struct request *middle = push_at(rig, 2);
    struct request *beyond = push_at(rig, 9);
    assert_int_equal(take(rig, START), 2);
    assert_ptr_equal(rig->out[0], high);
    assert_ptr_equal(rig->out[1], unset);
    assert_int_equal(take(rig, START), 2);
    assert_ptr_equal(rig->out[0], middle);
    assert_ptr_equal(rig->out[1], beyond);
    assert_int_equal(take(rig, START), 1);
    assert_ptr_equal(rig->out[0], low);
    rig_end(rig);
}

/* As many levels as the field can say, and no memory for those without requests. */
static void as_many_levels_as_can_be_said(void **state)
{
    (void)state;
    const struct batcher_level_policy last[] = {{UINT64_MAX, {.max_queue_size = 1}}};
    struct batcher_config c = levels(UINT64_MAX, UINT64_MAX - 1);
    c.level_policies = last;
    c.level_policy_count = 1;
    struct rig *rig = rig_new(&c);
    struct request *lowest = push_at(rig, UINT64_MAX);
    struct request *unset = push_at(rig, 0);
    struct request *first = push_at(rig, 1);
    struct request *refused = make(rig, 1, 4);
    refused->priority = UINT64_MAX;
    assert_int_equal(batcher_push(rig->batcher, START, refused), BATCHER_PUSH_FULL);
    assert_int_equal(take(rig, START), 2);
    assert_ptr_equal(rig->out[0], first);
    assert_ptr_equal(rig->out[1], unset);
    assert_int_equal(take(rig, START), 1);
    assert_ptr_equal(rig->out[0], lowest);
    rig_end(rig);
}

/* MC-121, PB-92: a full queue refuses; each level counts for itself. */
static void queue_size(void **state)
{
    (void)state;
    const struct batcher_level_policy second[] = {{2, {.max_queue_size = 1}}};
    struct batcher_config c = levels(2, 1);
    c.default_policy.max_queue_size = 2;
    c.level_policies = second;
    c.level_policy_count = 1;
    struct rig *rig = rig_new(&c);
    push_at(rig, 1);
    push_at(rig, 1);
    push_at(rig, 2);
    struct request *extra = make(rig, 1, 4);
    assert_int_equal(batcher_push(rig->batcher, START, extra), BATCHER_PUSH_FULL);
    extra->priority = 2;
    assert_int_equal(batcher_push(rig->batcher, START, extra), BATCHER_PUSH_FULL);
    assert_int_equal(batcher_depth(rig->batcher), 3);
    assert_int_equal(take(rig, START), 2);
    extra->priority = 1;
    assert_int_equal(batcher_push(rig->batcher, START, extra), BATCHER_PUSH_OK);
    rig_end(rig);
}

/* A queue that is full of requests whose time is over has room. */
static void full_of_the_expired(void **state)
{
    (void)state;
    struct batcher_config c = {.dynamic = true,
                               .max_batch_size = 8,
                               .delay_us = 1000,
                               .default_policy = {.max_queue_size = 1, .default_timeout_us = 10}};
    struct rig *rig = rig_new(&c);
    push(rig, START, 1);
    push(rig, START + TIME_US(10), 1);
    assert_true(batcher_has_dropped(rig->batcher));
    assert_true(batcher_next_deadline(rig->batcher) == 0);
    assert_int_equal(expired(rig, START + TIME_US(10)), 1);
    rig_end(rig);
}

/* MC-122, PB-85: REJECT; the deadline holds though no instance asks. */
static void timed_out_requests_are_rejected(void **state)
{
    (void)state;
    struct batcher_config c = {
        .dynamic = true, .max_batch_size = 8, .default_policy = {.default_timeout_us = 50}};
    struct rig *rig = rig_new(&c);
    assert_true(batcher_next_deadline(rig->batcher) == TIME_NEVER);
    push(rig, START, 1);
    push(rig, START + TIME_US(20), 1);
    assert_true(batcher_next_deadline(rig->batcher) == START + TIME_US(50));
    assert_int_equal(expired(rig, START + TIME_US(50) - 1), 0);
    assert_int_equal(expired(rig, START + TIME_US(50)), 1);
    assert_true(batcher_next_deadline(rig->batcher) == START + TIME_US(70));
    assert_int_equal(take(rig, START + TIME_US(69)), 1);
    assert_ptr_equal(rig->out[0], rig->requests[1]);
    assert_int_equal(batcher_depth(rig->batcher), 0);
    rig_end(rig);
}

/* MC-122, PB-86, PB-87: DELAY puts a request behind those of its level that are in time, before
 * the next level. */
static void timed_out_requests_are_delayed(void **state)
{
    (void)state;
    struct batcher_config c = levels(2, 1);
    c.default_policy =
        (struct batcher_policy){.action = BATCHER_TIMEOUT_DELAY, .default_timeout_us = 50};
    struct rig *rig = rig_new(&c);
    struct request *late = push_at(rig, 1);
    struct request *below = push_at(rig, 2);
    time_ns later = START + TIME_US(60);
    assert_int_equal(expired(rig, later), 0);
    struct request *fresh = make(rig, 1, 4);
    fresh->priority = 1;
    assert_int_equal(batcher_push(rig->batcher, later, fresh), BATCHER_PUSH_OK);
    assert_int_equal(take(rig, later), 2);
    assert_ptr_equal(rig->out[0], fresh);
    assert_ptr_equal(rig->out[1], late);
    assert_int_equal(take(rig, later), 1);
    assert_ptr_equal(rig->out[0], below);
    rig_end(rig);
}

static time_ns deadline(const struct batcher_config *c, uint64_t own_us)
{
    struct rig *rig = rig_new(c);
    struct request *r = make(rig, 1, 4);
    r->timeout_us = own_us;
    assert_int_equal(batcher_push(rig->batcher, START, r), BATCHER_PUSH_OK);
    time_ns at = r->queue_deadline;
    rig_end(rig);
    return at;
}

/* PB-89, PB-90, PB-91, X-31: docs/decisions/0010-request-timeouts.md: the whole table. */
static void own_timeouts(void **state)
{
    (void)state;
    struct batcher_config c = {0};
    assert_true(deadline(&c, 0) == TIME_NEVER);
    assert_true(deadline(&c, 30) == START + TIME_US(30));
    assert_true(deadline(&c, UINT64_MAX) == TIME_NEVER);
    c = (struct batcher_config){.dynamic = true, .max_batch_size = 8};
    assert_true(deadline(&c, 30) == TIME_NEVER);
    c.default_policy.default_timeout_us = 50;
    assert_true(deadline(&c, 30) == START + TIME_US(50));
    c.default_policy.allow_timeout_override = true;
    assert_true(deadline(&c, 0) == START + TIME_US(50));
    assert_true(deadline(&c, 30) == START + TIME_US(30));
    assert_true(deadline(&c, 80) == START + TIME_US(50));
    c.default_policy.default_timeout_us = 0;
    assert_true(deadline(&c, 30) == START + TIME_US(30));
    assert_true(deadline(&c, 0) == TIME_NEVER);
}

/* MC-119, MC-120, PB-102, PB-103, PB-104, PB-105: a level's own policy, else the default one,
 * else all defaults. */
static void policies_of_levels(void **state)
{
    (void)state;
    const struct batcher_level_policy second[] = {{2, {.default_timeout_us = 70}}};
    struct batcher_config c = levels(3, 3);
    assert_true(deadline(&c, 0) == TIME_NEVER);
    c.default_policy.default_timeout_us = 40;
    c.level_policies = second;
    c.level_policy_count = 1;
    assert_true(deadline(&c, 0) == START + TIME_US(40));
    c.default_level = 2;
    assert_true(deadline(&c, 0) == START + TIME_US(70));
}

/* A cancelled request never runs: taken out at once, or found when its turn comes. */
static void cancelled_requests(void **state)
{
    (void)state;
    struct batcher_config c = preferring_4_8(0);
    struct rig *rig = rig_new(&c);
    push_many(rig, START, 4);
    assert_true(batcher_ready(rig->batcher, START, &rig->wake));
    assert_true(batcher_remove(rig->batcher, rig->requests[1]));
    assert_false(batcher_remove(rig->batcher, rig->requests[1]));
    atomic_store(&rig->requests[2]->cancelled, true);
    assert_int_equal(take(rig, START), 2);
    assert_ptr_equal(rig->out[1], rig->requests[3]);
    assert_int_equal(expired(rig, START), 1);
    assert_false(batcher_remove(rig->batcher, rig->requests[0]));
    rig_end(rig);
}

static void drain_and_oldest(void **state)
{
    (void)state;
    struct batcher_config c = levels(2, 1);
    struct rig *rig = rig_new(&c);
    assert_true(batcher_oldest(rig->batcher) == TIME_NEVER);
    assert_true(batcher_first(rig->batcher) == TIME_NEVER);
    push_at(rig, 2);
    assert_true(batcher_first(rig->batcher) == START);
    push(rig, START + 5, 1); /* later, and before it */
    assert_true(batcher_oldest(rig->batcher) == START);
    assert_true(batcher_first(rig->batcher) == START + 5);
    struct list all;
    list_init(&all);
    assert_int_equal(batcher_drain(rig->batcher, &all), 2);
    assert_ptr_equal(LIST_ITEM(all.next, struct request, queue_node), rig->requests[1]);
    assert_ptr_equal(LIST_ITEM(all.prev, struct request, queue_node), rig->requests[0]);
    assert_int_equal(batcher_depth(rig->batcher), 0);
    rig_end(rig);
}

/* A strategy that lets rows in up to a limit, and writes down what it is asked: [ begin, y or n
 * for each request, ] end. */
struct strategist {
    char said[64];
    uint32_t rows;
    uint32_t most;
};

static void strategist_says(struct strategist *s, char what)
{
    s->said[strlen(s->said)] = what;
}

static void strategist_begins(void *arg)
{
    struct strategist *s = arg;
    strategist_says(s, '[');
    s->rows = 0;
}

static bool strategist_includes(void *arg, const struct request *r)
{
    struct strategist *s = arg;
    bool joins = s->rows + r->batch_size <= s->most;
    s->rows += joins ? r->batch_size : 0;
    strategist_says(s, joins ? 'y' : 'n');
    return joins;
}

static void strategist_ends(void *arg)
{
    strategist_says(arg, ']');
}

static struct batcher_config strategic(struct strategist *s, uint64_t delay_us)
{
    return (struct batcher_config){.dynamic = true,
                                   .max_batch_size = 8,
                                   .delay_us = delay_us,
                                   .strategy = {.arg = s,
                                                .begin = strategist_begins,
                                                .include = strategist_includes,
                                                .end = strategist_ends}};
}

/* MC-103: in order; whom the strategy leaves out begins the next batch, at once. */
static void a_strategy_closes_batches(void **state)
{
    (void)state;
    struct strategist s = {.most = 3};
    struct batcher_config c = strategic(&s, 1000000);
    struct rig *rig = rig_new(&c);
    assert_string_equal(s.said, "");
    push_many(rig, START, 2);
    assert_false(batcher_ready(rig->batcher, START, &rig->wake));
    assert_false(batcher_ready(rig->batcher, START, &rig->wake));
    assert_string_equal(s.said, "[yy");
    push_many(rig, START, 3);
    assert_true(batcher_ready(rig->batcher, START, &rig->wake));
    assert_int_equal(take(rig, START), 3);
    assert_ptr_equal(rig->out[2], rig->requests[2]);
    assert_string_equal(s.said, "[yyyn]");
    assert_int_equal(take(rig, START), 0);
    assert_int_equal(take(rig, START + TIME_S(1)), 2);
    assert_string_equal(s.said, "[yyyn][yy]");
    rig_end(rig);
    assert_string_equal(s.said, "[yyyn][yy]");
}

/* One that is left out though the batch is empty runs alone: else nothing ever would. */
static void a_strategy_that_wants_none(void **state)
{
    (void)state;
    struct strategist s = {.most = 0};
    struct batcher_config c = strategic(&s, 1000000);
    struct rig *rig = rig_new(&c);
    push_many(rig, START, 2);
    assert_int_equal(take(rig, START), 1);
    assert_int_equal(take(rig, START), 1);
    assert_string_equal(s.said, "[n][n]");
    rig_end(rig);
}

/* The batch begins anew where another request stands in front; one that was begun ends with the
 * batcher. */
static void a_strategy_begins_anew(void **state)
{
    (void)state;
    struct strategist s = {.most = 8};
    struct batcher_config c = strategic(&s, 1000000);
    c.priority_levels = 2;
    c.default_level = 2;
    struct rig *rig = rig_new(&c);
    push(rig, START, 2);
    assert_false(batcher_ready(rig->batcher, START, &rig->wake));
    struct request *urgent = make(rig, 3, 4);
    urgent->priority = 1;
    assert_int_equal(batcher_push(rig->batcher, START, urgent), BATCHER_PUSH_OK);
    assert_string_equal(s.said, "[y]");
    assert_false(batcher_ready(rig->batcher, START, &rig->wake));
    assert_string_equal(s.said, "[y][yy");
    rig_end(rig);
    assert_string_equal(s.said, "[y][yy]");
}

/* Requests that could not join anyway are not asked about; nor is anybody where nothing is
 * batched. */
static void a_strategy_is_asked_last(void **state)
{
    (void)state;
    struct strategist s = {.most = 8};
    struct batcher_config c = strategic(&s, 0);
    struct rig *rig = rig_new(&c);
    push(rig, START, 5);
    push(rig, START, 4);
    assert_int_equal(take(rig, START), 1);
    assert_string_equal(s.said, "[y]");
    rig_end(rig);
    s = (struct strategist){.most = 8};
    c.dynamic = false;
    rig = rig_new(&c);
    push_many(rig, START, 1);
    assert_int_equal(take(rig, START), 1);
    assert_string_equal(s.said, "");
    rig_end(rig);
}

/* PB-101: it and the other settings have ranges. */
static void settings_out_of_range(void **state)
{
    (void)state;
    struct batcher *b = NULL;
    const int32_t nought[] = {0};
    const int32_t nine[] = {9};
    const struct batcher_level_policy third[] = {{3, {0}}};
    struct batcher_config c = {
        .dynamic = true, .max_batch_size = 8, .preferred = nought, .preferred_count = 1};
    unit_fails(batcher_new(&c, &b), STATUS_INVALID_ARG, "preferred size must be positive");
    c.preferred = nine;
    unit_fails(batcher_new(&c, &b), STATUS_INVALID_ARG, "preferred size must be <= max batch size");
    c = levels(2, 0);
    unit_fails(batcher_new(&c, &b), STATUS_INVALID_ARG,
               "default priority level must be in range [1, 2]");
    c = levels(2, 3);
    unit_fails(batcher_new(&c, &b), STATUS_INVALID_ARG,
               "default priority level must be in range [1, 2]");
    c = levels(2, 1);
    c.level_policies = third;
    c.level_policy_count = 1;
    unit_fails(batcher_new(&c, &b), STATUS_INVALID_ARG, "priority level in range [1, 2]");
    assert_null(b);
    batcher_free(NULL);
}

UNIT_MAIN(UNIT(default_scheduler_runs_each_alone), UNIT(largest_preferred_size),
          UNIT(largest_possible_otherwise), UNIT(delay_is_counted_from_the_oldest),
          UNIT(completed_size_goes_at_once), UNIT(smaller_preferred_does_not_wait),
          UNIT(past_all_preferred_sizes), UNIT(preferred_size_by_default),
          UNIT(shapes_part_batches), UNIT(priority_levels), UNIT(as_many_levels_as_can_be_said),
          UNIT(queue_size), UNIT(full_of_the_expired), UNIT(timed_out_requests_are_rejected),
          UNIT(timed_out_requests_are_delayed), UNIT(own_timeouts), UNIT(policies_of_levels),
          UNIT(cancelled_requests), UNIT(drain_and_oldest), UNIT(settings_out_of_range),
          UNIT(a_strategy_closes_batches), UNIT(a_strategy_that_wants_none),
          UNIT(a_strategy_begins_anew), UNIT(a_strategy_is_asked_last))
