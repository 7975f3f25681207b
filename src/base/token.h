#pragma once
/* Tokens: what plug-ins are given in place of an address. A token of an object that is gone, of
 * a part that it does not have, or that never was one, is told from a live one without a look at
 * any memory but the table's own, which stays for ever.
 *
 * An object has a slot of the table. Its token is the slot, how often the slot was renewed, what
 * kind of handle it is, and which part of the object. A slot comes back to the same token after
 * it was renewed 16 million times. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a token is for; a slot has one count for all of them. */
enum token_kind {
    TOKEN_REQUEST = 1,
    TOKEN_INPUT, /* a part of a request */
    TOKEN_FACTORY,
    TOKEN_RESPONSE,
    TOKEN_OUTPUT, /* a part of a response */
    TOKEN_CACHE_ENTRY,
    TOKEN_CACHE_COPIER, /* the last that there is room for: three bits */
};

#define TOKEN_MAX_PART 8191u

/* token_open - a slot for an object; token_close - give it back, its tokens are stale. Any
 * thread. */
uint32_t token_open(void *object);
void token_close(uint32_t slot);

/* token_renew - what was given out so far is stale from here on. By one thread at a time. */
void token_renew(uint32_t slot);

/* token_make - the token that stands for the object now; never NULL. part: at most
 * TOKEN_MAX_PART. */
void *token_make(uint32_t slot, enum token_kind kind, uint32_t part);

/* token_find - the object of a token; NULL when it is stale, of another kind, or none at all.
 * Any thread.
 * ret_part  may be NULL */
void *token_find(const void *token, enum token_kind kind, uint32_t *ret_part);

/* token_part - the part that a token is for; of any value, what would be if it was a token. */
uint32_t token_part(const void *token);

/* token_take - as token_find, and stale from here on: of several that come with one token at a
 * time, one gets the object. */
void *token_take(const void *token, enum token_kind kind);

/* token_was - whether a value that token_find did not find was a token of this kind once. */
bool token_was(const void *token, enum token_kind kind);
