#pragma once
/* Fault points: tests make the n-th fallible operation of the process fail; in production they
 * never do. Every fallible allocation, system call and thread creation of base/ and os/ asks
 * fault_hit() first. */
#include <stdbool.h>

/* fault_arm - the n-th fault point passed from now on (1 = the next) fails, once; 0 disarms.
 * Tests only. */
void fault_arm(long n);

/* fault_passed - fault points passed since the last fault_arm. */
long fault_passed(void);

/* fault_hit - true when the operation that asks must behave as if it had failed. Any thread. */
bool fault_hit(void);
