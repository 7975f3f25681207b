#pragma once
/* The words of a command line, as a shell or a list in a file gives them. Pure. */
#include <stdbool.h>
#include <stddef.h>

/* The most words that are kept; more are dropped, and `cut` is set. */
#define MIGRATE_MAX_WORDS 4096

struct migrate_words {
    char **words; /* owned */
    size_t count;
    bool cut;
};

void migrate_words_add(struct migrate_words *w, const char *text, size_t len);

/* migrate_words_split - add the words of a text, as a shell parts them: quotes, backslashes,
 * comments. The end of a command (a new line, `;`, `&&`, `|`, ...) is a word ";". Variables stay
 * as they are written. */
void migrate_words_split(struct migrate_words *w, const char *text, size_t len);

/* migrate_words_server - the options of the first tritonserver.
 * returns  false if there is none; else [*ret_first, *ret_end) are its arguments */
bool migrate_words_server(const struct migrate_words *w, size_t *ret_first, size_t *ret_end);

void migrate_words_fini(struct migrate_words *w);
