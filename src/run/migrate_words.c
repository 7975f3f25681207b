#include "run/migrate_words.h"

#include "base/mem.h"
#include "base/strbuf.h"

#include <string.h>

#define PROGRAM "tritonserver"
#define END     ";"

void migrate_words_add(struct migrate_words *w, const char *text, size_t len)
{
    if (!w->words)
        w->words = mem_zalloc(MIGRATE_MAX_WORDS * sizeof(*w->words));
    w->cut |= w->count == MIGRATE_MAX_WORDS;
    if (!w->cut)
        w->words[w->count++] = mem_strndup(text, len);
}

static bool migrate_words_is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static bool ends_command(char c)
{
    return c == '\n' || c == ';' || c == '&' || c == '|';
}

/* Reads what is in quotes, from behind the first one on; returns where the last one is. */
static const char *read_quoted(struct strbuf *word, const char *at, const char *end, char quote)
{
    for (; at < end && *at != quote; at++) {
        if (quote == '"' && *at == '\\' && at + 1 < end)
            at++;
        strbuf_putc(word, *at);
    }
    return at;
}

/* Reads one word, which begins at `at`; returns where it ends. */
static const char *read_word(struct strbuf *word, const char *at, const char *end)
{
    for (; at < end && !migrate_words_is_blank(*at) && !ends_command(*at); at++) {
        if (*at == '\'' || *at == '"') {
            at = read_quoted(word, at + 1, end, *at);
            if (at == end)
                break;
        } else if (*at == '\\' && at + 1 < end) {
            at++;
            if (*at == '\n') /* the command goes on in the next line */
                continue;
            strbuf_putc(word, *at);
        } else {
            strbuf_putc(word, *at);
        }
    }
    return at;
}

void migrate_words_split(struct migrate_words *w, const char *text, size_t len)
{
    const char *at = text, *end = text + len;
    while (at < end && !w->cut) {
        if (*at == '#')
            while (at < end && *at != '\n')
                at++;
        if (at == end)
            break;
        if (ends_command(*at)) {
            migrate_words_add(w, END, 1);
            at++;
        } else if (migrate_words_is_blank(*at)) {
            at++;
        } else {
            struct strbuf word = STRBUF_INIT;
            const char *begin = at;
            at = read_word(&word, at, end);
            if (word.len || *begin == '\'' || *begin == '"')
                migrate_words_add(w, strbuf_str(&word), word.len);
            strbuf_fini(&word);
        }
    }
}

static bool is_program(const char *word)
{
    const char *slash = strrchr(word, '/');
    return strcmp(slash ? slash + 1 : word, PROGRAM) == 0;
}

bool migrate_words_server(const struct migrate_words *w, size_t *ret_first, size_t *ret_end)
{
    for (size_t i = 0; i < w->count; i++) {
        if (!is_program(w->words[i]))
            continue;
        size_t end = i + 1;
        while (end < w->count && strcmp(w->words[end], END) != 0 && !strchr("<>", *w->words[end]) &&
               strncmp(w->words[end], "2>", 2) != 0)
            end++;
        *ret_first = i + 1;
        *ret_end = end;
        return true;
    }
    return false;
}

void migrate_words_fini(struct migrate_words *w)
{
    for (size_t i = 0; i < w->count; i++)
        mem_free(w->words[i]);
    mem_free(w->words);
    *w = (struct migrate_words){0};
}
