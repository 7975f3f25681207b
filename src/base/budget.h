#pragma once
/* One budget for all bytes in flight. Memory that peers make the server hold is charged here
 * before it is allocated. Any thread. */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

/* budget_set_limit - the most bytes that may be charged at once; the default is no limit. */
void budget_set_limit(size_t bytes);
size_t budget_limit(void);

/* budget_charge - take n bytes. Returns false and takes nothing if that would exceed the limit:
 * then answer 503. */
__attribute__((warn_unused_result)) bool budget_charge(size_t n);

/* budget_room - true if there is room for n more bytes now. */
bool budget_room(size_t n);

/* budget_charge_anyway - take n bytes even if there is no room, for what is not refused. */
void budget_charge_anyway(size_t n);

/* budget_charge_up - charge what is missing to n bytes for something that grows. Returns as
 * budget_charge.
 * charged  how many are charged for it; never less than before */
__attribute__((warn_unused_result)) bool budget_charge_up(size_t *charged, size_t n);

/* budget_busy - the error where there is no room: a text that says for what, and how full the
 * budget is. Who wants more than the limit is not told to try again.
 * n  the bytes wanted; 0 = they will have room, however many they are */
__attribute__((warn_unused_result, returns_nonnull, format(printf, 2, 3), cold)) struct err *
budget_busy(size_t n, const char *fmt, ...);

/* budget_release - give back bytes that were charged. */
void budget_release(size_t n);
size_t budget_in_use(void);

/* An account counts what one peer makes the server hold in small pieces: its requests and
 * responses, and answers that it does not read. The account charges the budget in steps; what is
 * below a step is free for the peer, however many pieces it has. So a server whose budget is
 * spent still answers short questions. Short things are held without asking; before something
 * new begins, ask budget_account_room. An account lives until its owner has closed it and it
 * holds nothing. NULL is an account that counts nothing. */
struct budget_account;

#define BUDGET_STEP ((size_t)16384)

/* budget_account_new - make an empty account.
 * budget_account_close - the peer is gone; what is still held is charged to the last byte. */
struct budget_account *budget_account_new(void);
void budget_account_close(struct budget_account *a);

/* budget_account_room - true if n more bytes are below a step, or the budget has room for them. */
bool budget_account_room(const struct budget_account *a, size_t n);

/* budget_account_holds - true if the account holds more than n bytes. */
bool budget_account_holds(const struct budget_account *a, size_t n);

/* budget_account_prove - the peer has sent a large message to its end.
 * budget_account_spend_proof - true once for each of these, up to 64. The thread of the peer's
 * connection only. */
void budget_account_prove(struct budget_account *a);
bool budget_account_spend_proof(struct budget_account *a);

/* budget_hold - hold n more bytes, even if there is no room.
 * budget_take - hold n more bytes if there is room; else return false.
 * budget_drop - hold n bytes less. */
void budget_hold(struct budget_account *a, size_t n);
__attribute__((warn_unused_result)) bool budget_take(struct budget_account *a, size_t n);
void budget_drop(struct budget_account *a, size_t n);

/* budget_spare - take n bytes although there is no room, for an answer that describes the
 * server, so that monitoring works even if others have spent the budget. All such answers
 * together may take a sixteenth of the budget; a single one may have any length.
 * budget_unspare - give them back. */
__attribute__((warn_unused_result)) bool budget_spare(size_t n);
void budget_unspare(size_t n);
