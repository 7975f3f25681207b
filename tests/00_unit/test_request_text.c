/* Texts that clients choose: what is bounded, what is charged and given back. */
#include "infer/request_text.h"

#include "base/budget.h"
#include "infer/request.h"
#include "model/config.h"

#include "support/test_version.h"
#include "support/unit.h"

#include <stdlib.h>
#include <string.h>

static void no_unpin(struct request_target *t)
{
    (void)t;
}

static struct request_target target = {.unpin = no_unpin};

static struct request *begin(void)
{
    target.config = test_version_config("");
    return request_new(&target, NULL, NULL, NULL);
}

static void end(struct request *r)
{
    request_release(r);
    config_unref((struct model_config *)(uintptr_t)target.config);
}

static char *text(size_t len)
{
    char *s = malloc(len + 1);
    memset(s, 'a', len);
    s[len] = '\0';
    return s;
}

static void expect(struct err *e, enum status code, const char *part)
{
    assert_non_null(e);
    assert_int_equal(err_code(e), code);
    assert_non_null(strstr(err_message(e), part));
    err_free(e);
}

static void an_id_has_a_limit(void **state)
{
    (void)state;
    struct request *r = begin();
    char *id = text(REQUEST_TEXT_ID_BYTES + 1);
    assert_null(request_text_id(r, NULL, 0));
    assert_string_equal(r->id, "");
    assert_null(request_text_id(r, id, REQUEST_TEXT_ID_BYTES));
    assert_int_equal(strlen(r->id), REQUEST_TEXT_ID_BYTES);
    expect(request_text_id(r, id, REQUEST_TEXT_ID_BYTES + 1), STATUS_INVALID_ARG, "16385 bytes");
    free(id);
    end(r);
}

static void a_sequence_has_a_limit(void **state)
{
    (void)state;
    struct request *r = begin();
    char *id = text(REQUEST_MAX_CORRELATION + 1);
    assert_null(request_text_sequence(r, id, REQUEST_MAX_CORRELATION));
    assert_int_equal(strlen(r->correlation_string), REQUEST_MAX_CORRELATION);
    expect(request_text_sequence(r, id, REQUEST_MAX_CORRELATION + 1), STATUS_UNSUPPORTED,
           "string correlation ID cannot be longer than 128 characters");
    free(id);
    end(r);
}

static void what_a_request_takes_is_held_until_it_ends(void **state)
{
    (void)state;
    size_t before = budget_in_use();
    struct budget_account *account = budget_account_new();
    struct request *r = begin();
    request_account(r, account);
    assert_int_equal(budget_in_use(), before);
    char *s = text(100000);
    param_add_string(&r->params, &r->arena, "a", 1, s, 100000);
    assert_in_range(budget_in_use(), before + 90000, before + 120000);
    free(s);
    budget_account_close(account);
    assert_in_range(budget_in_use(), before + 103000, before + 120000);
    end(r);
    assert_int_equal(budget_in_use(), before);
}

static void past_the_budget_it_is_refused(void **state)
{
    (void)state;
    size_t limit = budget_limit(), before = budget_in_use();
    struct budget_account *account = budget_account_new();
    struct request *r = begin();
    request_account(r, account);
    budget_set_limit(before + 50000);
    expect(request_text_room(r, 60000), STATUS_UNAVAILABLE, "no room for 60000 bytes");
    assert_null(request_text_room(r, 40000));
    budget_hold(account, 48000);
    expect(request_text_room(r, 20000), STATUS_UNAVAILABLE, "no room for 20000 bytes");
    budget_drop(account, 48000);
    end(r);
    budget_account_close(account);
    assert_int_equal(budget_in_use(), before);
    budget_set_limit(limit);
}

static void messages_are_cut_between_characters(void **state)
{
    (void)state;
    char *s = text(REQUEST_TEXT_MESSAGE_BYTES + 10);
    assert_int_equal(request_text_message(""), 0);
    assert_int_equal(request_text_message("an ordinary one"), 15);
    assert_int_equal(request_text_message(s), REQUEST_TEXT_MESSAGE_BYTES);
    memcpy(s + REQUEST_TEXT_MESSAGE_BYTES - 2, "\xE2\x82\xAC", 3);
    assert_int_equal(request_text_message(s), REQUEST_TEXT_MESSAGE_BYTES - 2);
    s[REQUEST_TEXT_MESSAGE_BYTES] = '\0'; /* as long as may be */
    assert_int_equal(request_text_message(s), REQUEST_TEXT_MESSAGE_BYTES);
    free(s);
}

UNIT_MAIN(UNIT(an_id_has_a_limit), UNIT(a_sequence_has_a_limit),
          UNIT(what_a_request_takes_is_held_until_it_ends), UNIT(past_the_budget_it_is_refused),
          UNIT(messages_are_cut_between_characters))
