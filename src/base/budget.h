#pragma once
/* One budget for all bytes in flight: what peers make us hold is charged here before it is
 * allocated. Any thread. */
#include <stdbool.h>
#include <stddef.h>

/* budget_set_limit - the most bytes that may be charged at once; the default is no limit. */
void budget_set_limit(size_t bytes);
size_t budget_limit(void);

/* budget_charge - take n bytes; false (nothing taken) when the limit would be passed: answer 503
 * then. */
__attribute__((warn_unused_result)) bool budget_charge(size_t n);

/* budget_release - give back what was charged. */
void budget_release(size_t n);
size_t budget_in_use(void);

/* What one peer makes us hold that is too little to be charged piece by piece: its requests and
 * their responses, answers that it does not read. An account adds it up and charges the budget
 * in steps; what is left below a step is the peer's allowance, however many pieces it has: a
 * server whose budget is spent still answers short questions. What is short is held without
 * asking, and whoever begins something new asks first (budget_account_room). An account lives
 * until its owner has closed it and nothing is held any more. NULL is an account that counts
 * nothing. */
struct budget_account;

#define BUDGET_STEP ((size_t)16384)

/* budget_account_new - an account that holds nothing. budget_account_close - nobody is behind it
 * any more: what is still held is charged to the last byte. */
struct budget_account *budget_account_new(void);
void budget_account_close(struct budget_account *a);

/* budget_account_room - whether n bytes more are within the allowance, or there is budget for
 * them. */
bool budget_account_room(const struct budget_account *a, size_t n);

/* budget_hold - n bytes more, whether there is room or not. budget_take - the same where there
 * is room; else false.
 * budget_drop - n bytes less. */
void budget_hold(struct budget_account *a, size_t n);
__attribute__((warn_unused_result)) bool budget_take(struct budget_account *a, size_t n);
void budget_drop(struct budget_account *a, size_t n);

/* budget_spare - take n bytes though there is no room, for an answer that tells about the
 * server: whoever looks after a server sees it also when others have spent its budget. All of
 * them together may take a sixteenth of the budget; one alone may be of any length.
 * budget_unspare - give them back. */
__attribute__((warn_unused_result)) bool budget_spare(size_t n);
void budget_unspare(size_t n);
