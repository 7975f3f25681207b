#include "infer/param.h"

#include "support/unit.h"

static void in_order_of_arrival(void **state)
{
    (void)state;
    struct arena a;
    struct param_list l = {0};
    arena_init(&a, NULL, 0);
    assert_null(param_find(&l, "a"));
    param_add(&l, &a, "a-long", 1, PARAM_INT)->i = 1;
    param_add(&l, &a, "b", 1, PARAM_BOOL)->b = true;
    param_add_string(&l, &a, "s", 1, "x\0y", 3);
    param_add(&l, &a, "a", 1, PARAM_INT)->i = 2;
    assert_int_equal(l.count, 4);
    const char *names[] = {"a", "b", "s", "a"};
    int i = 0;
    for (const struct param *p = l.first; p; p = p->next)
        assert_string_equal(p->name, names[i++]);
    assert_int_equal(i, 4);
    assert_int_equal(param_find(&l, "a")->i, 2); /* the last one counts */
    assert_int_equal(param_find(&l, "s")->bytes.len, 3);
    assert_memory_equal(param_find(&l, "s")->bytes.data, "x\0y", 4);
    assert_null(param_find(&l, "a-long"));
    arena_fini(&a);
}

UNIT_MAIN(UNIT(in_order_of_arrival))
