#pragma once
/* Tokens: plug-ins get a token instead of an address. A stale token, a token for a part that the
 * object does not have, and an invalid value are recognized without access to any memory except
 * the table, which is never freed.
 *
 * An object has a slot in the table. Its token contains the slot, how often the slot was
 * renewed, the kind of handle, and the part of the object. After 16 million renewals a slot has
 * the same token again. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The kind of handle; a slot has one count of renewals for all kinds. */
enum token_kind {
    TOKEN_REQUEST = 1,
    TOKEN_INPUT, /* a part of a request */
    TOKEN_FACTORY,
    TOKEN_RESPONSE,
    TOKEN_OUTPUT, /* a part of a response */
    TOKEN_CACHE_ENTRY,
    TOKEN_CACHE_COPIER, /* the last possible value: three bits */
};

#define TOKEN_MAX_PART 8191u

/* token_open - take a slot for an object.
 * token_close - give it back; its tokens are stale. Any thread. */
uint32_t token_open(void *object);
void token_close(uint32_t slot);

/* token_renew - make all tokens of the slot stale. One thread at a time. */
void token_renew(uint32_t slot);

/* token_make - the current token of the object; never NULL. part: at most TOKEN_MAX_PART. */
void *token_make(uint32_t slot, enum token_kind kind, uint32_t part);

/* token_find - the object of a token; NULL if the token is stale, of another kind, or invalid.
 * Any thread.
 * ret_part  may be NULL */
void *token_find(const void *token, enum token_kind kind, uint32_t *ret_part);

/* token_part - the part that a token names; the value is not checked. */
uint32_t token_part(const void *token);

/* token_take - as token_find, and makes the token stale. If several threads bring the same token
 * at once, only one gets the object. */
void *token_take(const void *token, enum token_kind kind);

/* token_was - true if a value that token_find did not find was once a token of this kind. */
bool token_was(const void *token, enum token_kind kind);
