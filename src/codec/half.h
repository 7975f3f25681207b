#pragma once
/* Floating-point numbers of 16 bits: FP16 (IEEE 754 binary16) and BF16 (the upper half of a
 * binary32). Pure; any thread. */
#include <stdbool.h>
#include <stdint.h>

/* Its bits, besides the sign. */
struct half_form {
    uint8_t exponent_bits;
    uint8_t fraction_bits;
};

#define HALF_FP16 ((struct half_form){5, 10})
#define HALF_BF16 ((struct half_form){8, 7})

/* half_round - the nearest number; of two that are equally near, the even one. Infinities and
 * NaN stay what they are.
 * returns  false if d is finite and too large: *ret is unchanged */
bool half_round(double d, struct half_form form, uint16_t *ret);

/* half_value - what it means; exact. */
double half_value(uint16_t bits, struct half_form form);
