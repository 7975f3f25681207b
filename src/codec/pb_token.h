#pragma once
/* Splits the protobuf text format into tokens. Pure; works on borrowed bytes that need not end
 * in NUL.
 * source: the protobuf text format language specification; where parsers differ, as the C++
 * parser */
#include "base/strbuf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum pb_token_kind {
    PB_TOKEN_END,
    PB_TOKEN_NAME,    /* letter or underscore, then letters, digits, underscores */
    PB_TOKEN_INTEGER, /* decimal, hexadecimal with 0x, or octal with 0; without sign */
    PB_TOKEN_FLOAT,   /* with a point, an exponent or a trailing f; without sign */
    PB_TOKEN_STRING,  /* one quoted piece, with its quotes */
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

/* pb_token_start - move to the first token of len bytes.
 * pb_token_next - move to the next token. It stays at END and BAD. */
void pb_token_start(struct pb_lexer *lx, const char *text, size_t len);
void pb_token_next(struct pb_lexer *lx);

/* pb_token_is - true if the token is this symbol or this name. */
bool pb_token_is(const struct pb_token *t, const char *what);

/* pb_token_integer - the value of an INTEGER token; false if it is above UINT64_MAX. */
bool pb_token_integer(const struct pb_token *t, uint64_t *ret);

/* pb_token_double - the value of a FLOAT or decimal INTEGER token. */
double pb_token_double(const struct pb_token *t);

/* pb_token_unquote - append the bytes that a STRING token means. */
void pb_token_unquote(const struct pb_token *t, struct strbuf *out);
