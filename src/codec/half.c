#include "codec/half.h"

#include <math.h>
#include <string.h>

#define DOUBLE_BIAS     1023
#define DOUBLE_FRACTION 52u
#define DOUBLE_SPECIAL  2047u /* the exponent of infinities and NaN */

static int bias(struct half_form f)
{
    return (1 << (f.exponent_bits - 1)) - 1;
}

static uint16_t infinity(struct half_form f)
{
    return (uint16_t)(((1u << f.exponent_bits) - 1) << f.fraction_bits);
}

/* value / 2^shift to the nearest, ties to even; 0 < shift. */
static uint64_t shift_rounded(uint64_t value, unsigned shift)
{
    if (shift > 63) /* less than half of the smallest number */
        return 0;
    uint64_t whole = value >> shift;
    uint64_t rest = value & (((uint64_t)1 << shift) - 1);
    uint64_t tie = (uint64_t)1 << (shift - 1);
    return whole + (rest > tie || (rest == tie && whole & 1));
}

bool half_round(double d, struct half_form form, uint16_t *ret)
{
    uint64_t bits;
    memcpy(&bits, &d, sizeof(bits));
    uint16_t sign = (uint16_t)(bits >> 48 & 0x8000);
    unsigned exponent = bits >> DOUBLE_FRACTION & DOUBLE_SPECIAL;
    uint64_t fraction = bits & (((uint64_t)1 << DOUBLE_FRACTION) - 1);
    if (exponent == DOUBLE_SPECIAL) {
        uint16_t quiet = (uint16_t)(1u << (form.fraction_bits - 1));
        *ret = (uint16_t)(sign | infinity(form) | (fraction ? quiet : 0));
        return true;
    }
    /* A number below the normal ones is a multiple of the smallest: the exponent is 0 and all
     * bits are in the fraction. Where rounding carries into the exponent, that is the next
     * number. */
    int scale = (int)exponent - DOUBLE_BIAS + bias(form);
    unsigned shift = DOUBLE_FRACTION - form.fraction_bits + (scale < 1 ? (unsigned)(1 - scale) : 0);
    uint64_t significand = exponent ? fraction | (uint64_t)1 << DOUBLE_FRACTION : fraction;
    uint64_t rounded = shift_rounded(significand, shift);
    if (scale > 1)
        rounded += (uint64_t)(unsigned)(scale - 1) << form.fraction_bits;
    if (rounded >= infinity(form))
        return false;
    *ret = (uint16_t)(sign | rounded);
    return true;
}

/* An exponent of a normal double. */
static double power_of_two(int exponent)
{
    uint64_t bits = (uint64_t)(exponent + DOUBLE_BIAS) << DOUBLE_FRACTION;
    double power;
    memcpy(&power, &bits, sizeof(power));
    return power;
}

double half_value(uint16_t bits, struct half_form form)
{
    unsigned exponent = (bits & 0x7fffu) >> form.fraction_bits;
    unsigned fraction = bits & ((1u << form.fraction_bits) - 1);
    double sign = bits & 0x8000 ? -1 : 1;
    if (exponent == (1u << form.exponent_bits) - 1)
        return fraction ? copysign(NAN, sign) : sign * INFINITY;
    unsigned significand = exponent ? fraction | 1u << form.fraction_bits : fraction;
    int scale = (int)(exponent ? exponent : 1) - bias(form) - form.fraction_bits;
    return sign * significand * power_of_two(scale);
}
