#include "serve/order_gate.h"

#include "support/unit.h"

#define REQUESTS 50

/* MC-114, PB-97: whatever the order in which requests complete, answers leave in the order of
 * arrival. */
static void in_order_of_arrival(void **state)
{
    (void)state;
    struct order_gate g;
    struct order_ticket t[3];
    struct mail m[3];
    order_gate_init(&g);
    assert_true(order_gate_empty(&g));
    for (int i = 0; i < 3; i++)
        order_gate_enter(&g, &t[i]);
    assert_false(order_gate_put(&g, &t[2], &m[2], true));
    assert_false(order_gate_put(&g, &t[1], &m[1], true));
    assert_true(order_gate_put(&g, &t[0], &m[0], true));
    struct mail *chain = order_gate_take(&g);
    for (int i = 0; i < 3; i++, chain = chain->next)
        assert_ptr_equal(chain, &m[i]);
    assert_null(chain);
    assert_false(order_gate_empty(&g));
    assert_null(order_gate_take(&g));
    assert_true(order_gate_empty(&g));
}

/* A request with several responses: they leave at once while it is the first, and hold the
 * others until the final one. */
static void several_responses(void **state)
{
    (void)state;
    struct order_gate g;
    struct order_ticket t[2];
    struct mail m[4];
    order_gate_init(&g);
    order_gate_enter(&g, &t[0]);
    order_gate_enter(&g, &t[1]);
    assert_true(order_gate_put(&g, &t[0], &m[0], false));
    assert_ptr_equal(order_gate_take(&g), &m[0]);
    assert_null(order_gate_take(&g));
    assert_false(order_gate_put(&g, &t[1], &m[2], false));
    assert_false(order_gate_put(&g, &t[1], &m[3], true));
    assert_true(order_gate_put(&g, &t[0], &m[1], true));
    struct mail *chain = order_gate_take(&g);
    for (int i = 1; i < 4; i++, chain = chain->next)
        assert_ptr_equal(chain, &m[i]);
    assert_null(chain);
    assert_null(order_gate_take(&g));
}

/* While one thread delivers, what another one completes goes out behind it, by the first thread. */
static void one_deliverer_at_a_time(void **state)
{
    (void)state;
    struct order_gate g;
    struct order_ticket t[2];
    struct mail m[2];
    order_gate_init(&g);
    order_gate_enter(&g, &t[0]);
    order_gate_enter(&g, &t[1]);
    assert_true(order_gate_put(&g, &t[0], &m[0], true));
    assert_ptr_equal(order_gate_take(&g), &m[0]);
    assert_false(order_gate_put(&g, &t[1], &m[1], true)); /* the other thread */
    assert_ptr_equal(order_gate_take(&g), &m[1]);
    assert_null(order_gate_take(&g));
    assert_true(order_gate_empty(&g));
}

static void random_completion(void **state)
{
    (void)state;
    struct order_gate g;
    static struct order_ticket t[REQUESTS];
    static struct mail m[REQUESTS];
    int left[REQUESTS];
    uint64_t rng = 3;
    int next = 0;
    order_gate_init(&g);
    for (int i = 0; i < REQUESTS; i++) {
        left[i] = i;
        order_gate_enter(&g, &t[i]);
    }
    for (int n = REQUESTS; n; n--) {
        int pick = (int)(unit_random(&rng) % (uint64_t)n);
        int id = left[pick];
        left[pick] = left[n - 1];
        if (!order_gate_put(&g, &t[id], &m[id], true))
            continue;
        for (struct mail *c; (c = order_gate_take(&g)) != NULL;)
            for (; c; c = c->next)
                assert_ptr_equal(c, &m[next++]);
    }
    assert_int_equal(next, REQUESTS);
    assert_true(order_gate_empty(&g));
}

UNIT_MAIN(UNIT(in_order_of_arrival), UNIT(several_responses), UNIT(one_deliverer_at_a_time),
          UNIT(random_completion))
