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

static bool ends_word(char c)
{
    return migrate_words_is_blank(c) || ends_command(c) || c == '<' || c == '>' || c == ')';
}

/* Reads one word, which begins at `at`; returns where it ends. Parentheses in it are of $(...),
 * <(...) or an array, so nothing ends it before they, or backquotes, are closed. */
static const char *read_word(struct strbuf *word, const char *at, const char *end)
{
    size_t open = 0;
    bool back = false;
    for (; at < end && (open || back || !ends_word(*at)); at++) {
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
            open += *at == '(';
            open -= *at == ')';
            back ^= *at == '`';
            strbuf_putc(word, *at);
        }
    }
    return at;
}

/* Returns what is behind the redirection at `at`, such as `2>&1` or `> file`; `at` if there is
 * none. */
static const char *skip_redirection(const char *at, const char *end)
{
    const char *p = at;
    while (p < end && *p >= '0' && *p <= '9')
        p++;
    if (p == at && end - p > 1 && *p == '&' && p[1] == '>')
        p++;
    if (p == end || (*p != '<' && *p != '>'))
        return at;
    while (p < end && (*p == '<' || *p == '>' || *p == '&' || *p == '|'))
        p++;
    while (p < end && migrate_words_is_blank(*p))
        p++;
    struct strbuf target = STRBUF_INIT;
    p = read_word(&target, p, end);
    strbuf_fini(&target);
    return p;
}

static const char *split_word(struct migrate_words *w, const char *at, const char *end)
{
    struct strbuf word = STRBUF_INIT;
    const char *begin = at;
    at = read_word(&word, at, end);
    if (word.len || *begin == '\'' || *begin == '"')
        migrate_words_add(w, strbuf_str(&word), word.len);
    strbuf_fini(&word);
    return at;
}

void migrate_words_split(struct migrate_words *w, const char *text, size_t len)
{
    const char *at = text, *end = text + len, *behind;
    while (at < end && !w->cut) {
        if (*at == '#') {
            while (at < end && *at != '\n')
                at++;
        } else if (migrate_words_is_blank(*at)) {
            at++;
        } else if ((behind = skip_redirection(at, end)) != at) {
            at = behind;
        } else if (ends_command(*at) || *at == '(' || *at == ')') {
            migrate_words_add(w, END, 1);
            at++;
        } else {
            at = split_word(w, at, end);
        }
    }
}

/* True for NAME=value. */
static bool is_assignment(const char *word)
{
    size_t name = strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
    return name && word[name] == '=';
}

/* True for a word behind which a command may begin. */
static bool precedes_command(const char *word)
{
    static const char *const words[] = {"exec", "env",  "nohup", "sudo", "time", "if",
                                        "then", "else", "do",    "!",    "{"};
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (strcmp(word, words[i]) == 0)
            return true;
    return is_assignment(word);
}

static bool is_program(const char *word)
{
    const char *slash = strrchr(word, '/');
    return strcmp(slash ? slash + 1 : word, PROGRAM) == 0;
}

/* True if the server has an option at `at`, so that it is run, whatever stands before it:
 * `docker run IMAGE tritonserver --option`. */
static bool has_option(const struct migrate_words *w, size_t at)
{
    return at < w->count && (strncmp(w->words[at], "--", 2) == 0 || *w->words[at] == '$');
}

/* True if blanks show that the word is a script, as behind `sh -c`. */
static bool is_script(const char *word)
{
    return *word != '-' && strpbrk(word, " \t\n") && strstr(word, PROGRAM);
}

/* Looks at a word that is a script. If parentheses or backquotes hold it together, as in A=$(...),
 * the last one before the program's name is where it begins. Returns false if words were cut. */
static bool look_into(const char *word, size_t len, migrate_words_fn found, void *arg)
{
    struct migrate_words inner = {0};
    migrate_words_split(&inner, word, len);
    bool same = inner.count == 1 && strcmp(*inner.words, word) == 0;
    const char *script = strstr(word, PROGRAM);
    while (script > word && script[-1] != '(' && script[-1] != '`')
        script--;
    bool whole = true;
    if (!same)
        whole = migrate_words_servers(&inner, found, arg);
    else if (script > word)
        whole = look_into(script, script[-1] == '`' ? strcspn(script, "`") : strlen(script), found,
                          arg);
    migrate_words_fini(&inner);
    return whole;
}

bool migrate_words_servers(const struct migrate_words *w, migrate_words_fn found, void *arg)
{
    bool whole = !w->cut;
    bool begins = true; /* a command */
    for (size_t i = 0; i < w->count; i++) {
        const char *word = w->words[i];
        bool runs = begins && !is_assignment(word);
        begins = strcmp(word, END) == 0 || (begins && precedes_command(word));
        if (is_program(word) && (runs || has_option(w, i + 1))) {
            size_t first = i + 1;
            while (i + 1 < w->count && strcmp(w->words[i + 1], END) != 0)
                i++;
            found(arg, w->words + first, i + 1 - first);
        } else if (is_script(word)) {
            whole &= look_into(word, strlen(word), found, arg);
        }
    }
    return whole;
}

bool migrate_words_varies(const char *word)
{
    static const char after[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                "_{(@*#?!-$";
    for (const char *at = word; (at = strpbrk(at, "$`")); at++)
        if (*at == '`' || (at[1] && strchr(after, at[1])))
            return true;
    return false;
}

void migrate_words_fini(struct migrate_words *w)
{
    for (size_t i = 0; i < w->count; i++)
        mem_free(w->words[i]);
    mem_free(w->words);
    *w = (struct migrate_words){0};
}
