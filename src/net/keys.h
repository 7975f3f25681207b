#pragma once
/* The keys of --api-keys: who may ask for what, read at the start and again when the file
 * changes. A line of the file is a key and the categories that it opens, parted by commas, or
 * `all`; the key `-` is for who shows none. # begins a comment line. */
#include "base/err.h"
#include "server/options/options_front.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct keys;

#define KEYS_MAX       1000u /* keys of a file */
#define KEYS_MAX_BYTES 256u  /* of a key */

/* What a key opens: a bit for each category. */
typedef uint32_t keys_rights;
#define KEYS_RIGHT(category) ((keys_rights)1 << (category))
#define KEYS_ALL             UINT32_MAX

/* keys_new - read the file.
 * path     borrowed until keys_free; NULL = no keys: *ret is NULL
 * errors   those of file_read; INVALID_ARG with the line
 * Blocks. */
struct err *keys_new(const char *path, struct keys **ret);

/* keys_look - read the file again if it has changed, and is at rest since the last look. Where
 * it cannot be used, a line of the log says why, nothing changes, and each look tries again.
 * Blocks: one thread, no loop. NULL is fine.
 * now  do not wait for the next look */
void keys_look(struct keys *k, bool now);

/* keys_rights_of - what a key opens, 0 when there is no such key; it takes as long for a key that
 * is wrong as for one that is right. keys_rights_open - what is open without any. Any thread. */
keys_rights keys_rights_of(struct keys *k, const char *key, size_t len);
keys_rights keys_rights_open(struct keys *k);

/* keys_free - NULL is fine. */
void keys_free(struct keys *k);
