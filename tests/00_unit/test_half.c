/* 16-bit floating-point numbers: all of them there and back, and the borders between them. */
#include "codec/half.h"

#include "support/unit.h"

#include <math.h>

static uint16_t round_of(double d, struct half_form form)
{
    uint16_t got = 0;
    assert_true(half_round(d, form, &got));
    return got;
}

/* Each number is itself. Between two neighbours the nearer one is taken, in the middle the even
 * one; every double is between two neighbours. */
static void check_all(struct half_form form)
{
    unsigned infinity = ((1u << form.exponent_bits) - 1) << form.fraction_bits;
    for (unsigned n = 0; n < infinity; n++) {
        double here = half_value((uint16_t)n, form);
        assert_int_equal(round_of(here, form), n);
        assert_int_equal(round_of(-here, form), n | 0x8000);
        if (n + 1 == infinity)
            break;
        double next = half_value((uint16_t)(n + 1), form);
        double middle = here + (next - here) / 2; /* exact */
        assert_true(here < next);
        assert_int_equal(round_of(middle, form), n + (n & 1));
        assert_int_equal(round_of(nextafter(middle, 0), form), n);
        assert_int_equal(round_of(nextafter(middle, INFINITY), form), n + 1);
    }
}

static void every_number(void **state)
{
    (void)state;
    check_all(HALF_FP16);
    check_all(HALF_BF16);
}

static void known_numbers(void **state)
{
    (void)state;
    assert_int_equal(round_of(1, HALF_FP16), 0x3c00);
    assert_int_equal(round_of(-2, HALF_FP16), 0xc000);
    assert_int_equal(round_of(0.1, HALF_FP16), 0x2e66);
    assert_int_equal(round_of(65504, HALF_FP16), 0x7bff);
    assert_int_equal(round_of(0x1p-24, HALF_FP16), 1);
    assert_int_equal(round_of(1, HALF_BF16), 0x3f80);
    assert_int_equal(round_of(0.1, HALF_BF16), 0x3dcd);
    assert_int_equal(round_of(-0.0, HALF_BF16), 0x8000);
    assert_int_equal(round_of(5e-324, HALF_BF16), 0);
    assert_true(half_value(0x2e66, HALF_FP16) == 0.0999755859375);
}

/* What would become infinite is refused; what is infinite is not. */
static void the_largest(void **state)
{
    (void)state;
    uint16_t unchanged = 7;
    assert_false(half_round(65520, HALF_FP16, &unchanged));
    assert_false(half_round(-1e300, HALF_FP16, &unchanged));
    assert_false(half_round(3.4e38, HALF_BF16, &unchanged));
    assert_int_equal(unchanged, 7);
    assert_int_equal(round_of(nextafter(65520, 0), HALF_FP16), 0x7bff);
    assert_int_equal(round_of(INFINITY, HALF_FP16), 0x7c00);
    assert_int_equal(round_of(-INFINITY, HALF_BF16), 0xff80);
    assert_true(isinf(half_value(0x7c00, HALF_FP16)) && half_value(0xfc00, HALF_FP16) < 0);
    assert_true(isnan(half_value(round_of(NAN, HALF_FP16), HALF_FP16)));
    assert_true(isnan(half_value(round_of(NAN, HALF_BF16), HALF_BF16)));
}

UNIT_MAIN(UNIT(every_number), UNIT(known_numbers), UNIT(the_largest))
