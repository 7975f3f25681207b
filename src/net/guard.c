#include "net/guard.h"

#include "base/strbuf.h"

#include <string.h>
#include <strings.h>

static bool guard_is_name(const char *name, size_t len, const char *prefix, const char *want)
{
    size_t before = strlen(prefix);
    return len == before + strlen(want) && strncasecmp(name, prefix, before) == 0 &&
           strncasecmp(name + before, want, len - before) == 0;
}

/* Every byte is looked at, whatever came before it. */
static bool guard_is_value(const char *value, size_t len, const char *want)
{
    size_t want_len = strlen(want);
    unsigned char differs = len != want_len;
    for (size_t i = 0; i < len; i++)
        differs |= (unsigned char)(value[i] ^ want[i < want_len ? i : want_len]);
    return !differs;
}

/* Blanks behind a value are none of it, and no key has any. */
static void guard_note_key(const struct guard *g, struct guard_seen *seen, const char *key,
                           size_t len)
{
    while (len && (key[len - 1] == ' ' || key[len - 1] == '\t'))
        len--;
    keys_rights rights = seen->shown++ < GUARD_MOST_KEYS ? keys_rights_of(g->keys, key, len) : 0;
    seen->unknown |= !rights;
    seen->lacks |= ~rights;
}

/* "Bearer KEY"; other schemes are for others. */
static void guard_note_authorization(const struct guard *g, struct guard_seen *seen,
                                     const char *value, size_t len)
{
    static const char scheme[] = "bearer ";
    size_t at = sizeof(scheme) - 1;
    if (len < at || strncasecmp(value, scheme, at) != 0)
        return;
    while (at < len && value[at] == ' ')
        at++;
    guard_note_key(g, seen, value + at, len - at);
}

void guard_header(const struct guard *g, enum options_category category, struct guard_seen *seen,
                  const char *name, size_t name_len, const char *value, size_t len)
{
    if (guard_restricted(g, category)) {
        const struct options_restriction *r = &g->restrictions->of[category];
        if (guard_is_name(name, name_len, g->prefix, r->header)) {
            bool right = guard_is_value(value, len, r->value);
            seen->right |= right;
            seen->wrong |= !right;
        }
    }
    if (!g->keys)
        return;
    if (guard_is_name(name, name_len, "", "authorization"))
        guard_note_authorization(g, seen, value, len);
    else if (guard_is_name(name, name_len, "", "x-api-key"))
        guard_note_key(g, seen, value, len);
}

/* What belongs to no category, since it does not exist, is told to whoever has a key. */
static enum guard_answer guard_decide_key(const struct guard *g, enum options_category category,
                                          const struct guard_seen *seen)
{
    keys_rights wanted = KEYS_RIGHT(category);
    if (category != OPTIONS_CATEGORY_NONE && keys_rights_open(g->keys) & wanted)
        return GUARD_PASS;
    if (!seen->shown || seen->unknown)
        return GUARD_NO_KEY;
    bool lacks = category != OPTIONS_CATEGORY_NONE && seen->lacks & wanted;
    return lacks ? GUARD_NOT_ITS : GUARD_PASS;
}

enum guard_answer guard_decide(const struct guard *g, enum options_category category,
                               const struct guard_seen *seen)
{
    if (guard_restricted(g, category) && (!seen->right || seen->wrong))
        return GUARD_RESTRICTED;
    return g->keys ? guard_decide_key(g, category, seen) : GUARD_PASS;
}

void guard_say(const struct guard *g, enum options_category category, enum guard_answer answer,
               struct strbuf *to)
{
    switch (answer) {
    case GUARD_PASS:
        break;
    case GUARD_RESTRICTED:
        strbuf_printf(to, "This %s is restricted, expecting header '%s%s'", g->what, g->prefix,
                      g->restrictions->of[category].header);
        break;
    case GUARD_NO_KEY:
        strbuf_printf(to,
                      "This %s needs a key: expecting header 'authorization: Bearer KEY' or "
                      "'x-api-key: KEY'",
                      g->what);
        break;
    case GUARD_NOT_ITS:
        strbuf_printf(to, "The key is not one for this %s", g->what);
        break;
    }
}
