#pragma once
/* Fault points: tests make the n-th fallible operation of the process fail. In production they
 * never fail. Every fallible allocation, system call and thread creation in base/ and os/ calls
 * fault_hit() first. */
#include <stdbool.h>

/* fault_arm - let the n-th fault point from now on (1 = the next) fail once; 0 disarms. Tests
 * only. */
void fault_arm(long n);

/* fault_passed - the number of fault points passed since the last fault_arm. */
long fault_passed(void);

/* fault_hit - true if the operation must behave as if it had failed. Any thread. */
bool fault_hit(void);
