#include "http/openai/openai_answer.h"

#include "base/budget.h"
#include "base/mem.h"
#include "codec/base64.h"
#include "codec/json_out.h"
#include "http/http_answer.h"
#include "http/openai/openai_call.h"
#include "http/openai/openai_text.h"
#include "infer/response.h"
#include "model/config.h"
#include "model/shape.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* About what a number of an embedding takes as text, in each format. */
#define FLOAT_TEXT_BYTES 12u

/* Where the answer is made, a string at a time. */
struct strings {
    const char *at;
    uint64_t left;
};

static bool next_string(struct strings *s, const char **ret, uint32_t *ret_len)
{
    uint32_t len;
    if (s->left < sizeof(len))
        return false;
    memcpy(&len, s->at, sizeof(len));
    if (s->left - sizeof(len) < len)
        return false;
    *ret = s->at + sizeof(len);
    *ret_len = len;
    s->at += sizeof(len) + len;
    s->left -= sizeof(len) + len;
    return true;
}

/* Makes room for more of the answer. */
static struct err *hold(struct openai_call *call, size_t bytes)
{
    if (!budget_take(call->account, bytes))
        return budget_busy(bytes, "no room for an answer of %zu bytes", call->held + bytes);
    call->held += bytes;
    return NULL;
}

/* The output of a role; NULL = the response has none. It is one that can be told. */
static struct err *find_output(const struct openai_call *call, const struct response *r,
                               enum config_openai_output role, const struct tensor_output **ret)
{
    const struct model_io *io = call->map->outputs[role];
    *ret = NULL;
    for (const struct tensor_output *o = r->outputs; io && o; o = o->next) {
        if (strcmp(o->name, io->name) != 0)
            continue;
        size_t room = 0;
        if (o->datatype != io->datatype)
            return err_new(STATUS_INTERNAL, "output '%s': expected %s, found %s", o->name,
                           datatype_name(io->datatype), datatype_name(o->datatype));
        *ret = o;
        return http_answer_check_json(o, &room);
    }
    return NULL;
}

/* The sum of an output of numbers of tokens. */
static struct err *take_count(const struct openai_call *call, const struct response *r,
                              enum config_openai_output role, bool *known, uint64_t *sum)
{
    const struct tensor_output *o;
    struct err *e = find_output(call, r, role, &o);
    if (e || !o)
        return e;
    bool wide = o->datatype == DATATYPE_INT64 || o->datatype == DATATYPE_UINT64;
    size_t width = wide ? sizeof(uint64_t) : sizeof(uint32_t);
    uint64_t most = o->datatype == DATATYPE_INT32 ? INT32_MAX : UINT32_MAX;
    for (uint64_t at = 0; at + width <= o->byte_size; at += width) {
        uint64_t n = 0;
        memcpy(&n, (const char *)o->data + at, width);
        if (n <= most) /* a negative one is no number of tokens */
            *sum += n;
    }
    *known = true;
    return NULL;
}

static struct err *take_counts(struct openai_call *call, const struct response *r)
{
    struct err *e = take_count(call, r, CONFIG_OPENAI_COMPLETION_TOKENS, &call->completion_known,
                               &call->completion_tokens);
    if (e || call->prompt_known) /* each response may repeat it */
        return e;
    return take_count(call, r, CONFIG_OPENAI_PROMPT_TOKENS, &call->prompt_known,
                      &call->prompt_tokens);
}

static struct err *have_choices(struct openai_call *call, uint64_t count)
{
    if (count > OPENAI_CALL_MOST)
        return err_new(STATUS_INTERNAL, "the model gave %" PRIu64 " texts, at most %u are told",
                       count, OPENAI_CALL_MOST);
    if (count <= call->choice_count)
        return NULL;
    call->choices = mem_realloc(call->choices, (size_t)count * sizeof(*call->choices));
    memset(call->choices + call->choice_count, 0,
           (size_t)(count - call->choice_count) * sizeof(*call->choices));
    call->choice_count = (uint32_t)count;
    return NULL;
}

static void take_reasons(struct openai_call *call, const struct tensor_output *o)
{
    struct strings s = {o ? o->data : NULL, o ? o->byte_size : 0};
    const char *text;
    uint32_t len;
    for (uint32_t i = 0; i < call->choice_count && next_string(&s, &text, &len); i++) {
        if (!len || *call->choices[i].reason)
            continue;
        len = len < OPENAI_CALL_REASON_BYTES ? len : OPENAI_CALL_REASON_BYTES - 1;
        memcpy(call->choices[i].reason, text, len);
    }
}

static void put_reason(struct strbuf *to, const char *reason)
{
    strbuf_puts(to, ",\"logprobs\":null,\"finish_reason\":");
    if (*reason)
        openai_text_put(to, reason, strlen(reason));
    else
        strbuf_puts(to, "null");
    strbuf_putc(to, '}');
}

/* What every answer begins with. */
static void put_begin(struct strbuf *to, const struct openai_call *call)
{
    bool chat = call->task == CONFIG_OPENAI_CHAT;
    strbuf_printf(to,
                  "{\"id\":\"%s\",\"object\":\"%s%s\",\"created\":%" PRIu64 ",\"model\":", call->id,
                  chat ? "chat.completion" : "text_completion",
                  chat && call->streamed ? ".chunk" : "", call->created);
    openai_text_put(to, call->model, strlen(call->model));
    strbuf_puts(to, ",\"choices\":[");
}

static void put_token_usage(struct strbuf *to, const struct openai_call *call)
{
    strbuf_printf(to,
                  ",\"usage\":{\"prompt_tokens\":%" PRIu64 ",\"completion_tokens\":%" PRIu64
                  ",\"total_tokens\":%" PRIu64 "}}",
                  call->prompt_tokens, call->completion_tokens,
                  call->prompt_tokens + call->completion_tokens);
}

/* A chunk ends; those before the one that tells them say that they do not. */
static void put_chunk_end(struct strbuf *to, const struct openai_call *call)
{
    strbuf_puts(to, call->with_usage ? "],\"usage\":null}" : "]}");
}

static void put_delta(struct strbuf *to, struct openai_call *call, uint32_t i, const char *text,
                      size_t len)
{
    struct openai_choice *choice = &call->choices[i];
    bool chat = call->task == CONFIG_OPENAI_CHAT;
    strbuf_printf(to, "{\"index\":%u,%s", i, chat ? "\"delta\":{" : "\"text\":");
    if (chat && !choice->begun)
        strbuf_puts(to, "\"role\":\"assistant\",");
    if (chat)
        strbuf_puts(to, "\"content\":");
    openai_text_put(to, text, len);
    if (chat)
        strbuf_putc(to, '}');
    choice->begun = true;
}

/* A piece of a text, behind the beginning of a character that came before. */
static void put_piece_of(struct strbuf *to, struct openai_call *call, uint32_t i, const char *text,
                         uint32_t len)
{
    struct strbuf *rest = &call->choices[i].text;
    struct strbuf all = STRBUF_INIT;
    size_t bytes = len;
    if (rest->len) {
        all = *rest;
        *rest = (struct strbuf)STRBUF_INIT;
        strbuf_append(&all, text, len);
        text = all.data;
        bytes = all.len;
    }
    size_t whole = *call->choices[i].reason ? bytes : openai_text_whole(text, bytes);
    put_delta(to, call, i, text, whole);
    if (whole < bytes)
        strbuf_append(rest, text + whole, bytes - whole);
    strbuf_fini(&all);
}

static struct err *take_text(struct openai_call *call, uint32_t i, const char *text, uint32_t len)
{
    struct strbuf *all = &call->choices[i].text;
    struct err *e = hold(call, len);
    if (!e)
        strbuf_append(all, text, len);
    return e;
}

static struct err *take_texts(struct openai_call *call, const struct tensor_output *o)
{
    struct strings s = {o->data, o->byte_size};
    struct err *e = NULL;
    const char *text;
    uint32_t len;
    for (uint32_t i = 0; !e && i < call->choice_count && next_string(&s, &text, &len); i++)
        e = take_text(call, i, text, len);
    return e;
}

/* The texts of a response as a chunk, without those that ended before and go on with nothing.
 * Nothing if that leaves none: clients read the first choice of a chunk. */
static void put_texts(struct openai_call *call, const struct tensor_output *o, struct strbuf *ret)
{
    struct strings s = {o->data, o->byte_size};
    const char *text;
    uint32_t len;
    for (uint32_t i = 0; i < call->choice_count && next_string(&s, &text, &len); i++) {
        struct openai_choice *choice = &call->choices[i];
        if (choice->ended && !len)
            continue;
        if (ret->len)
            strbuf_putc(ret, ',');
        else
            put_begin(ret, call);
        put_piece_of(ret, call, i, text, len);
        put_reason(ret, choice->ended ? "" : choice->reason); /* told once */
        choice->ended = *choice->reason;
    }
    if (ret->len)
        put_chunk_end(ret, call);
}

static struct err *take_completion(struct openai_call *call, const struct response *r,
                                   struct strbuf *ret)
{
    const struct tensor_output *text, *reason;
    uint64_t count = 0;
    struct err *e = find_output(call, r, CONFIG_OPENAI_TEXT, &text);
    if (!e)
        e = find_output(call, r, CONFIG_OPENAI_FINISH_REASON, &reason);
    if (!e && text)
        shape_elements(text->shape, text->rank, &count);
    if (!e)
        e = have_choices(call, count);
    if (e)
        return e;
    take_reasons(call, reason);
    if (text && call->streamed)
        put_texts(call, text, ret);
    return text && !call->streamed ? take_texts(call, text) : NULL;
}

static void put_embedding(struct strbuf *to, const struct openai_call *call, const char *data,
                          size_t count)
{
    if (call->base64) {
        size_t bytes = count * sizeof(float);
        char *at = strbuf_reserve(to, (bytes + 2) / 3 * 4 + 2);
        char *end = at;
        *end++ = '"';
        end = base64_encode(end, data, bytes);
        *end++ = '"';
        *end = 0;
        to->len += (size_t)(end - at);
        return;
    }
    char *at = strbuf_reserve(to, count * JSON_OUT_NUMBER_BYTES + 2);
    char *end = at;
    *end++ = '[';
    if (count)
        end = json_out_floats(end, data, count);
    *end++ = ']';
    *end = 0;
    to->len += (size_t)(end - at);
}

/* JSON has no other numbers. */
static bool are_finite(const char *data, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        float number;
        memcpy(&number, data + i * sizeof(number), sizeof(number));
        if (!isfinite(number))
            return false;
    }
    return true;
}

static struct err *take_embeddings(struct openai_call *call, const struct response *r)
{
    const struct tensor_output *o;
    struct err *e = find_output(call, r, CONFIG_OPENAI_EMBEDDING, &o);
    if (e || !o)
        return e ? e
                 : err_new(STATUS_INTERNAL, "the model did not give its output '%s'",
                           call->map->outputs[CONFIG_OPENAI_EMBEDDING]->name);
    uint64_t count = o->byte_size / sizeof(float);
    if (count % call->rows || call->responses)
        return err_new(STATUS_INTERNAL,
                       "expected one response with an embedding for each of %u texts, found "
                       "%" PRIu64 " numbers in response %u",
                       call->rows, count, call->responses + 1);
    if (!call->base64 && !are_finite(o->data, count))
        return err_new(STATUS_INTERNAL, "output '%s' has what is no number that JSON has", o->name);
    e = hold(call, (size_t)count * FLOAT_TEXT_BYTES);
    if (e)
        return e;
    size_t each = (size_t)count / call->rows;
    for (uint32_t i = 0; i < call->rows; i++) {
        strbuf_puts(&call->answer, i ? ",{\"object\":\"embedding\"" : "{\"object\":\"embedding\"");
        strbuf_printf(&call->answer, ",\"index\":%u,\"embedding\":", i);
        put_embedding(&call->answer, call, (const char *)o->data + i * each * sizeof(float), each);
        strbuf_putc(&call->answer, '}');
    }
    return NULL;
}

struct err *openai_answer_take(struct openai_call *call, const struct response *r,
                               struct strbuf *ret)
{
    struct err *e = take_counts(call, r);
    if (!e)
        e = call->task == CONFIG_OPENAI_EMBEDDINGS ? take_embeddings(call, r)
                                                   : take_completion(call, r, ret);
    call->responses++;
    return e;
}

static void put_choice(struct strbuf *to, const struct openai_call *call, uint32_t i)
{
    const struct openai_choice *choice = &call->choices[i];
    bool chat = call->task == CONFIG_OPENAI_CHAT;
    strbuf_printf(to, "%s{\"index\":%u,%s", i ? "," : "", i,
                  chat ? "\"message\":{\"role\":\"assistant\",\"content\":" : "\"text\":");
    openai_text_put(to, strbuf_str(&choice->text), choice->text.len);
    if (chat)
        strbuf_puts(to, ",\"refusal\":null}");
    put_reason(to, *choice->reason ? choice->reason : "stop");
}

static void put_embeddings(struct openai_call *call, struct strbuf *to)
{
    strbuf_puts(to, "{\"object\":\"list\",\"model\":");
    openai_text_put(to, call->model, strlen(call->model));
    strbuf_puts(to, ",\"data\":[");
    strbuf_append(to, strbuf_str(&call->answer), call->answer.len);
    strbuf_fini(&call->answer);
    strbuf_putc(to, ']');
    if (call->prompt_known)
        strbuf_printf(to, ",\"usage\":{\"prompt_tokens\":%" PRIu64 ",\"total_tokens\":%" PRIu64 "}",
                      call->prompt_tokens, call->prompt_tokens);
    strbuf_putc(to, '}');
}

void openai_answer_whole(struct openai_call *call, struct strbuf *ret)
{
    if (call->task == CONFIG_OPENAI_EMBEDDINGS) {
        put_embeddings(call, ret);
        return;
    }
    err_free(have_choices(call, 1));
    put_begin(ret, call);
    for (uint32_t i = 0; i < call->choice_count; i++)
        put_choice(ret, call, i);
    strbuf_putc(ret, ']');
    if (call->prompt_known && call->completion_known)
        put_token_usage(ret, call);
    else
        strbuf_putc(ret, '}');
}

bool openai_answer_last(struct openai_call *call, struct strbuf *ret)
{
    err_free(have_choices(call, 1));
    const char *comma = "";
    put_begin(ret, call);
    for (uint32_t i = 0; i < call->choice_count; i++) {
        struct openai_choice *choice = &call->choices[i];
        if (choice->ended)
            continue;
        strbuf_puts(ret, comma);
        put_delta(ret, call, i, strbuf_str(&choice->text), choice->text.len);
        put_reason(ret, *choice->reason ? choice->reason : "stop");
        comma = ",";
    }
    put_chunk_end(ret, call);
    return *comma;
}

bool openai_answer_usage(const struct openai_call *call, struct strbuf *ret)
{
    if (!call->with_usage || !call->prompt_known || !call->completion_known)
        return false;
    put_begin(ret, call);
    strbuf_putc(ret, ']');
    put_token_usage(ret, call);
    return true;
}
