#include "codec/json_relax.h"

#include "base/mem.h"

#include <stdbool.h>
#include <string.h>

#define ESCAPE_BYTES 6

struct relaxing {
    const char *at;
    const char *end;
    char *to;
};

static void json_relax_put(struct relaxing *r, const char *s, size_t len)
{
    memcpy(r->to, s, len);
    r->to += len;
}

static void put_control(struct relaxing *r, unsigned char c)
{
    static const char digits[] = "0123456789abcdef";
    const char escape[ESCAPE_BYTES] = {'\\', 'u', '0', '0', digits[c >> 4], digits[c & 15]};
    json_relax_put(r, escape, sizeof(escape));
}

/* Writes a backslash and what follows it. */
static void put_escape(struct relaxing *r)
{
    r->at++;
    if (r->at == r->end)
        return;
    if (memchr("\"\\/bfnrtu", *r->at, 9))
        json_relax_put(r, "\\", 1);
    json_relax_put(r, r->at++, 1);
}

/* Writes a string, from its first to its last quote. */
static void json_relax_put_string(struct relaxing *r)
{
    char quote = *r->at++;
    json_relax_put(r, "\"", 1);
    while (r->at < r->end && *r->at != quote) {
        unsigned char c = (unsigned char)*r->at;
        if (c == '\\') {
            put_escape(r);
        } else if (c < ' ') {
            put_control(r, c);
            r->at++;
        } else {
            json_relax_put(r, "\\", c == '"');
            json_relax_put(r, r->at++, 1);
        }
    }
    json_relax_put(r, "\"", r->at < r->end);
    r->at += r->at < r->end;
}

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '$';
}

/* Writes a word: a key if a colon follows, else true, null, a number. */
static void json_relax_put_word(struct relaxing *r)
{
    const char *from = r->at;
    while (r->at < r->end && is_name(*r->at))
        r->at++;
    size_t len = (size_t)(r->at - from);
    const char *next = r->at;
    while (next < r->end && strchr(" \t\r\n", *next) && *next)
        next++;
    bool key = next < r->end && *next == ':' && (*from < '0' || *from > '9');
    json_relax_put(r, "\"", key);
    json_relax_put(r, from, len);
    json_relax_put(r, "\"", key);
}

/* The most bytes of the result: a control character becomes an escape; any other character gets
 * at most one backslash or quote. */
static size_t room(const char *text, size_t len)
{
    size_t bytes = 2 * len + 2;
    for (size_t i = 0; i < len; i++)
        bytes += (unsigned char)text[i] < ' ' ? ESCAPE_BYTES : 0;
    return bytes;
}

char *json_relax(const char *text, size_t len, size_t *ret_len)
{
    char *made = mem_try_alloc(room(text, len), 8);
    struct relaxing r = {.at = text, .end = text + len, .to = made};
    while (made && r.at < r.end) {
        if (*r.at == '"' || *r.at == '\'')
            json_relax_put_string(&r);
        else if (is_name(*r.at))
            json_relax_put_word(&r);
        else
            json_relax_put(&r, r.at++, 1);
    }
    *ret_len = made ? (size_t)(r.to - made) : 0;
    return made;
}
