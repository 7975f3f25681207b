#pragma once
/* One budget for all bytes in flight: what peers make us hold is charged here before it is allocated. Any thread. */
#include <stdbool.h>
#include <stddef.h>

/* budget_set_limit - the most bytes that may be charged at once; the default is no limit. */
void budget_set_limit(size_t bytes);
size_t budget_limit(void);

/* budget_charge - take n bytes; false (nothing taken) when the limit would be passed: answer 503 then. */
__attribute__((warn_unused_result)) bool budget_charge(size_t n);

/* budget_release - give back what was charged. */
void budget_release(size_t n);
size_t budget_in_use(void);
