#pragma once
/* What tests plan for calls of a stand-in, as NEREID_CUDA_FAIL and NEREID_CUDA_GATE say it
 * (standin.h). */

/* plan_result - the result with which call number n of a symbol is to fail; 0 = it does not.
 * plan  NULL = nothing fails */
int plan_result(const char *plan, const char *symbol, long n);

/* plan_gate - the named pipe at which that call is to wait; NULL = it does not.
 * plan_wait - wait until the pipe was opened for writing, and closed. */
const char *plan_gate(const char *plan, const char *symbol, long n);
void plan_wait(const char *gate);
