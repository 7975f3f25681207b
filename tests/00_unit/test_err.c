#include "base/err.h"

#include "support/unit.h"

#include <errno.h>
#include <string.h>

static void message_and_code(void **state)
{
    (void)state;
    struct err *e = err_new(STATUS_NOT_FOUND, "no model '%s', version %d", "m", 3);
    assert_int_equal(err_code(e), STATUS_NOT_FOUND);
    assert_string_equal(err_message(e), "no model 'm', version 3");
    e = err_wrap(e, "loading %d", 7);
    assert_string_equal(err_message(e), "loading 7: no model 'm', version 3");
    assert_int_equal(err_code(e), STATUS_NOT_FOUND);
    e = err_recode(e, STATUS_UNAVAILABLE);
    struct err *copy = err_copy(e);
    err_free(e);
    unit_fails(copy, STATUS_UNAVAILABLE, "loading 7: no model 'm', version 3");
}

static void success_stays_success(void **state)
{
    (void)state;
    assert_null(err_wrap(NULL, "context"));
    assert_null(err_recode(NULL, STATUS_INTERNAL));
    assert_null(err_copy(NULL));
    err_free(NULL);
}

static void long_and_odd_messages(void **state)
{
    (void)state;
    char text[10000];
    memset(text, 'a', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    struct err *e = err_new(STATUS_INTERNAL, "%s", text);
    assert_int_equal(strlen(err_message(e)), sizeof(text) - 1);
    err_free(e);
    e = err_new(STATUS_INTERNAL, "%s", "");
    e = err_wrap(e, "100%%");
    struct err *copy = err_copy(e);
    assert_string_equal(err_message(copy), "100%: ");
    err_free(copy);
    err_free(e);
}

/* A message goes into JSON and protocol buffers, whatever it quotes. */
static void bytes_that_are_no_text(void **state)
{
    (void)state;
    struct err *e = err_new(STATUS_INTERNAL, "'%s'", "gr\xc3\xbc\xc3 \xff\xe2\x82\xac\xc0\xaf");
    unit_fails(err_wrap(e, "%s", "\xf0\x9f\x98"), STATUS_INTERNAL,
               "\\xf0\\x9f\\x98: 'gr\xc3\xbc\\xc3 \\xff\xe2\x82\xac\\xc0\\xaf'");
}

static void system_errors(void **state)
{
    (void)state;
    unit_fails(err_errno(ENOENT, "opening '%s'", "x"), STATUS_NOT_FOUND,
               "opening 'x': No such file or directory");
    unit_fails(err_errno(EACCES, "opening"), STATUS_INTERNAL, "opening: Permission denied");
}

/* When trying again is worth it goes with the error, whatever is said around it. */
static void later(void **state)
{
    (void)state;
    struct err *e = err_new(STATUS_UNAVAILABLE, "gone");
    assert_int_equal(err_retry_secs(e), 0);
    e = err_wrap(err_retry_after(e, ERR_RETRY_LATER), "model '%s'", "m");
    struct err *copy = err_copy(err_recode(e, STATUS_INTERNAL));
    assert_int_equal(err_retry_secs(e), ERR_RETRY_LATER);
    assert_int_equal(err_retry_secs(copy), ERR_RETRY_LATER);
    err_free(e);
    err_free(copy);
    e = err_busy("%d wait", 3);
    assert_int_equal(err_retry_secs(e), ERR_RETRY_SOON);
    unit_fails(e, STATUS_UNAVAILABLE, "3 wait");
    assert_null(err_retry_after(NULL, 1));
}

static void look_at(void *arg)
{
    (void)err_code(arg);
}

/* What is no error (any more) is noticed: it crosses the ABI as a pointer. */
static void not_an_error(void **state)
{
    (void)state;
    char bytes[64] = "not an error";
    assert_true(unit_dies(look_at, bytes));
    assert_true(unit_dies(look_at, NULL));
}

static void status_table(void **state)
{
    (void)state;
    assert_string_equal(status_text(STATUS_INVALID_ARG), "Invalid argument");
    assert_int_equal(status_http(STATUS_UNAVAILABLE), 503);
    assert_int_equal(status_grpc(STATUS_CANCELLED), 1);
    assert_string_equal(status_text((enum status)99), "Unknown");
    assert_string_equal(status_text((enum status) - 1), "Unknown");
}

UNIT_MAIN(UNIT(message_and_code), UNIT(success_stays_success), UNIT(long_and_odd_messages),
          UNIT(bytes_that_are_no_text), UNIT(system_errors), UNIT(later), UNIT(not_an_error),
          UNIT(status_table))
