#include "base/token.h"

#include "base/slab.h"
#include "os/thread.h"
#include "support/unit.h"

#include <stdatomic.h>

static const struct slab tracked = {.kind = SLAB_TEST, .object_bytes = 200, .tokens = true};

static void found_until_renewed(void **state)
{
    (void)state;
    int object;
    uint32_t slot = token_open(&object);
    void *token = token_make(slot, TOKEN_REQUEST, 0);
    assert_non_null(token);
    assert_ptr_equal(token_find(token, TOKEN_REQUEST, NULL), &object);
    token_renew(slot);
    assert_null(token_find(token, TOKEN_REQUEST, NULL));
    assert_true(token_was(token, TOKEN_REQUEST));
    void *again = token_make(slot, TOKEN_REQUEST, 0);
    assert_ptr_not_equal(again, token);
    assert_ptr_equal(token_find(again, TOKEN_REQUEST, NULL), &object);
    token_close(slot);
    assert_null(token_find(again, TOKEN_REQUEST, NULL));
}

static void taken_once(void **state)
{
    (void)state;
    int object;
    uint32_t slot = token_open(&object);
    void *token = token_make(slot, TOKEN_RESPONSE, 0);
    assert_null(token_take(token, TOKEN_REQUEST));
    assert_ptr_equal(token_take(token, TOKEN_RESPONSE), &object);
    assert_null(token_take(token, TOKEN_RESPONSE));
    assert_null(token_find(token, TOKEN_RESPONSE, NULL));
    token_close(slot);
}

static void parts_and_kinds(void **state)
{
    (void)state;
    int object;
    uint32_t slot = token_open(&object);
    uint32_t part = 9;
    void *token = token_make(slot, TOKEN_OUTPUT, TOKEN_MAX_PART);
    assert_ptr_equal(token_find(token, TOKEN_OUTPUT, &part), &object);
    assert_int_equal(part, TOKEN_MAX_PART);
    assert_null(token_find(token, TOKEN_INPUT, &part));
    assert_false(token_was(token, TOKEN_INPUT));
    token_close(slot);
}

/* What never was a token: nothing, addresses of all sorts, numbers. */
static void nothing_else_is_found(void **state)
{
    (void)state;
    int here;
    const void *const values[] = {NULL,
                                  &here,
                                  (const void *)nothing_else_is_found,
                                  (void *)1,
                                  (void *)-1,
                                  (void *)0x2000000000000000,
                                  (void *)~0xffULL};
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
        for (enum token_kind kind = TOKEN_REQUEST; kind <= TOKEN_OUTPUT; kind++) {
            assert_null(token_find(values[i], kind, NULL));
            assert_false(token_was(values[i], kind));
        }
}

/* A slot that is used again is another token, and the old one does not find the new object. */
static void a_reused_slot_is_another(void **state)
{
    (void)state;
    int first, second;
    uint32_t slot = token_open(&first);
    void *old = token_make(slot, TOKEN_RESPONSE, 0);
    token_close(slot);
    assert_int_equal(token_open(&second), slot);
    assert_null(token_find(old, TOKEN_RESPONSE, NULL));
    assert_ptr_equal(token_find(token_make(slot, TOKEN_RESPONSE, 0), TOKEN_RESPONSE, NULL),
                     &second);
    token_close(slot);
}

static void objects_of_a_slab(void **state)
{
    (void)state;
    slab_thread_begin();
    void *a = slab_alloc(&tracked);
    assert_int_equal((uintptr_t)a % 16, 0);
    void *token = token_make(slab_token(a), TOKEN_REQUEST, 0);
    assert_ptr_equal(token_find(token, TOKEN_REQUEST, NULL), a);
    slab_free(&tracked, a);
    assert_null(token_find(token, TOKEN_REQUEST, NULL));
    assert_ptr_equal(slab_alloc(&tracked), a);
    assert_null(token_find(token, TOKEN_REQUEST, NULL));
    void *next = token_make(slab_token(a), TOKEN_REQUEST, 0);
    slab_thread_end();
    slab_free(&tracked, a); /* back to the heap: the slot is free as well */
    assert_null(token_find(next, TOKEN_REQUEST, NULL));
}

#define MANY 3000u

/* More than a chunk of the table at one time, from several threads; each finds its own and
 * nobody else's. */
static void churn(void *arg)
{
    atomic_uint *wrong = arg;
    static _Thread_local uint32_t slots[MANY];
    for (int round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < MANY; i++)
            slots[i] = token_open(&slots[i]);
        for (uint32_t i = 0; i < MANY; i++) {
            void *token = token_make(slots[i], TOKEN_REQUEST, i);
            uint32_t part;
            if (token_find(token, TOKEN_REQUEST, &part) != &slots[i] || part != i)
                atomic_fetch_add(wrong, 1);
            token_close(slots[i]);
            if (token_find(token, TOKEN_REQUEST, &part))
                atomic_fetch_add(wrong, 1);
        }
    }
}

static void many_threads(void **state)
{
    (void)state;
    atomic_uint wrong = 0;
    struct thread *threads[3];
    for (int i = 0; i < 3; i++)
        unit_succeeds(thread_start("churn", churn, &wrong, &threads[i]));
    for (int i = 0; i < 3; i++)
        thread_join(threads[i]);
    assert_int_equal(wrong, 0);
}

UNIT_MAIN(UNIT(found_until_renewed), UNIT(taken_once), UNIT(parts_and_kinds),
          UNIT(nothing_else_is_found), UNIT(a_reused_slot_is_another), UNIT(objects_of_a_slab),
          UNIT(many_threads))
