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
 * comments; redirections are dropped. The end of a command (a new line, `;`, `&&`, `|`, `(`, ...)
 * is a word ";". Variables stay as they are written. */
void migrate_words_split(struct migrate_words *w, const char *text, size_t len);

/* migrate_words_fn - a tritonserver is started with these arguments; borrowed for the call. */
typedef void (*migrate_words_fn)(void *arg, char *const *argv, size_t argc);

/* migrate_words_servers - call `found` for each tritonserver that is started, also within a word
 * that is a script (sh -c "..."); not where its name is an argument (which tritonserver).
 * returns  false if there were more words than are kept, also in such a script */
bool migrate_words_servers(const struct migrate_words *w, migrate_words_fn found, void *arg);

/* migrate_words_varies - whether a variable stands in the word, or what a command prints: what it
 * is where it runs is not known here. */
bool migrate_words_varies(const char *word);

void migrate_words_fini(struct migrate_words *w);
