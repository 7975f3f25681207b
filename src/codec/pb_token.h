#pragma once
/* Tokens of the protobuf text format. Pure; works on borrowed bytes that need not end in NUL.
 * source: the protobuf text format language specification; where its parsers differ, as the C++ one
 * reads */
#include "base/strbuf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum pb_token_kind {
    PB_TOKEN_END,
    PB_TOKEN_NAME,    /* letter or underscore, then letters, digits, underscores */
    PB_TOKEN_INTEGER, /* decimal, 0x hexadecimal or 0 octal, without sign */
    PB_TOKEN_FLOAT,   /* with point, exponent or a trailing f; without sign */
    PB_TOKEN_STRING,  /* one quoted piece, quotes included */
    PB_TOKEN_SYMBOL,  /* one other character */
    PB_TOKEN_BAD,     /* `problem` says why */
};

struct pb_token {
    enum pb_token_kind kind;
    const char *start;
    size_t len;
    uint32_t line;   /* from 1 */
    uint32_t column; /* from 1, in bytes */
    const char *problem;
};

struct pb_lexer {
    struct pb_token token; /* the current one */
    const char *cur;
    const char *end;
    const char *line_start;
    uint32_t line;
};

/* pb_token_start - stand on the first token of len bytes; pb_token_next - go on to the next one. At
 * END and BAD it stays. */
void pb_token_start(struct pb_lexer *lx, const char *text, size_t len);
void pb_token_next(struct pb_lexer *lx);

/* pb_token_is - the token is this symbol, or this name. */
bool pb_token_is(const struct pb_token *t, const char *what);

/* pb_token_integer - the value of an INTEGER token; false when it is over UINT64_MAX. */
bool pb_token_integer(const struct pb_token *t, uint64_t *ret);

/* pb_token_double - the value of a FLOAT or decimal INTEGER token. */
double pb_token_double(const struct pb_token *t);

/* pb_token_unquote - append the bytes that a STRING token stands for. */
void pb_token_unquote(const struct pb_token *t, struct strbuf *out);
