#include "base/list.h"

#include "support/unit.h"

struct item {
    int number;
    struct list node;
};

static int first(const struct list *l)
{
    return LIST_ITEM(l->next, struct item, node)->number;
}

static void append_pop_remove(void **state)
{
    (void)state;
    struct list l;
    struct item items[3] = {{.number = 0}, {.number = 1}, {.number = 2}};
    list_init(&l);
    assert_true(list_empty(&l));
    assert_null(list_pop(&l));
    for (int i = 0; i < 3; i++)
        list_append(&l, &items[i].node);
    list_remove(&items[1].node);
    list_remove(&items[1].node); /* again: no harm */
    assert_true(list_empty(&items[1].node));
    list_insert_before(&items[2].node, &items[1].node);
    for (int i = 0; i < 3; i++)
        assert_int_equal(LIST_ITEM(list_pop(&l), struct item, node)->number, i);
    assert_true(list_empty(&l));
}

static void walk_while_removing(void **state)
{
    (void)state;
    struct list l;
    struct item items[4] = {{.number = 0}, {.number = 1}, {.number = 2}, {.number = 3}};
    int sum = 0;
    list_init(&l);
    for (int i = 0; i < 4; i++)
        list_append(&l, &items[i].node);
    LIST_EACH (it, &l) {
        int n = LIST_ITEM(it, struct item, node)->number;
        sum += n;
        if (n % 2 == 0)
            list_remove(it);
    }
    assert_int_equal(sum, 6);
    assert_int_equal(first(&l), 1);
}

static void splice(void **state)
{
    (void)state;
    struct list a;
    struct list b;
    struct item items[4] = {{.number = 0}, {.number = 1}, {.number = 2}, {.number = 3}};
    list_init(&a);
    list_init(&b);
    list_splice(&a, &b);
    assert_true(list_empty(&a));
    list_append(&a, &items[0].node);
    list_splice(&a, &b);
    for (int i = 1; i < 4; i++)
        list_append(&b, &items[i].node);
    list_splice(&a, &b);
    assert_true(list_empty(&b));
    for (int i = 0; i < 4; i++)
        assert_int_equal(LIST_ITEM(list_pop(&a), struct item, node)->number, i);
    assert_true(list_empty(&a));
}

UNIT_MAIN(UNIT(append_pop_remove), UNIT(walk_while_removing), UNIT(splice))
