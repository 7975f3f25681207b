#pragma once
/* Errors as objects, for cold paths: a code and a message for people. The message names the
 * thing, the place, what was expected and what was found. NULL means success. The same object is
 * the TRITONSERVER_Error of the C ABI. */
#include "base/status.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

struct err;

/* Seconds after which trying again is worth it: where the server has too much to do, which may
 * be over at any moment; and where something is loaded or started, which takes seconds. */
#define ERR_RETRY_SOON  1
#define ERR_RETRY_LATER 5

/* err_new - make an error; the message is formatted as by printf. Bytes that
 * are no UTF-8 become \xNN in it. The caller owns it: return it, or free it with err_free. Never
 * NULL. Any thread. */
__attribute__((warn_unused_result, returns_nonnull, format(printf, 2, 3), cold)) struct err *
err_new(enum status code, const char *fmt, ...);
__attribute__((warn_unused_result, returns_nonnull, format(printf, 2, 0), cold)) struct err *
err_vnew(enum status code, const char *fmt, va_list args);

/* err_busy - make an UNAVAILABLE error that time mends, after ERR_RETRY_SOON. */
__attribute__((warn_unused_result, returns_nonnull, format(printf, 1, 2), cold)) struct err *
err_busy(const char *fmt, ...);

/* err_retry_after - note that trying again may succeed after some seconds; err_wrap, err_recode
 * and err_copy keep it. NULL stays NULL.
 * err_retry_secs - what was noted; 0 = time does not mend it, or nobody knows. */
struct err *err_retry_after(struct err *e, uint16_t seconds);
uint16_t err_retry_secs(const struct err *e);

/* err_errno - make an INTERNAL error (NOT_FOUND for ENOENT) whose message ends in ": " and the
 * system's text for `number`. */
__attribute__((warn_unused_result, returns_nonnull, format(printf, 2, 3), cold)) struct err *
err_errno(int number, const char *fmt, ...);

/* err_wrap - put context in front: "context: message". Takes `e` over; NULL stays NULL. */
__attribute__((warn_unused_result, format(printf, 2, 3))) struct err *
err_wrap(struct err *e, const char *fmt, ...);

/* err_recode - the same message with another code. Takes `e` over; NULL stays NULL. */
__attribute__((warn_unused_result)) struct err *err_recode(struct err *e, enum status code);

/* err_copy - an independent copy; NULL stays NULL. */
__attribute__((warn_unused_result)) struct err *err_copy(const struct err *e);

enum status err_code(const struct err *e);
const char *err_message(const struct err *e);

/* err_lend - mark an error that is shown to a caller of the C API who does not own it.
 * err_is_lent - true if it is marked: TRITONSERVER_ErrorDelete by such a caller does nothing,
 * but err_free frees it. NULL is fine, and not lent. */
void err_lend(struct err *e);
bool err_is_lent(const struct err *e);

/* err_free - NULL is fine. */
void err_free(struct err *e);
