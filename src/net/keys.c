#include "net/keys.h"

#include "base/log.h"
#include "base/mem.h"
#include "os/files/file.h"
#include "os/files/stamp.h"
#include "os/mutex.h"

#include <stdatomic.h>
#include <string.h>

#define FILE_BYTES ((size_t)1 << 20)

struct key {
    const char *text; /* in the table's text */
    size_t len;
    keys_rights rights;
};

/* What a file said; never changed. */
struct keys_table {
    atomic_uint refs; /* the last that goes sees what all others did: acquire, release */
    char *text;
    size_t text_len;
    keys_rights open;
    uint32_t count;
    struct key keys[KEYS_MAX];
};

struct keys {
    const char *path;
    struct stamp_watch watch;
    struct mutex lock; /* rank LEAF; guards table */
    struct keys_table *table;
};

static void keys_table_unref(struct keys_table *t)
{
    if (!t || atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) != 1)
        return;
    if (t->text)
        explicit_bzero(t->text, t->text_len);
    mem_free(t->text);
    mem_free(t);
}

static struct keys_table *keys_table_of(struct keys *k)
{
    mutex_lock(&k->lock);
    struct keys_table *t = k->table;
    atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed); /* the lock orders it */
    mutex_unlock(&k->lock);
    return t;
}

/* Takes as long wherever they differ. */
static bool keys_equal(const struct key *k, const char *text, size_t len)
{
    unsigned char differs = k->len != len;
    for (size_t i = 0; i < len && i < k->len; i++)
        differs |= (unsigned char)(k->text[i] ^ text[i]);
    return !differs;
}

/* All keys are looked at, whichever is right. */
static keys_rights keys_find(const struct keys_table *t, const char *text, size_t len)
{
    keys_rights found = 0;
    for (uint32_t i = 0; i < t->count; i++)
        found |= keys_equal(&t->keys[i], text, len) ? t->keys[i].rights : 0;
    return found;
}

/* Categories parted by commas, or all. */
static struct err *keys_read_rights(const char *text, keys_rights *ret)
{
    keys_rights rights = 0;
    if (strcmp(text, "all") == 0) {
        *ret = KEYS_ALL;
        return NULL;
    }
    for (const char *at = text;; at++) {
        size_t len = strcspn(at, ",");
        enum options_category category = options_front_category(at, len);
        if (category == OPTIONS_CATEGORY_NONE)
            return err_new(STATUS_INVALID_ARG,
                           "expected all, or categories of " OPTIONS_CATEGORY_NAMES
                           ", metrics, found '%.*s'",
                           (int)len, at);
        rights |= KEYS_RIGHT(category);
        at += len;
        if (!*at)
            break;
    }
    *ret = rights;
    return NULL;
}

/* One line that ends in NUL. What it says of a key is not repeated in errors. */
static struct err *keys_read_line(struct keys_table *t, char *line)
{
    char *rest = NULL;
    char *key = strtok_r(line, " \t\r", &rest);
    char *rights_text = key ? strtok_r(NULL, " \t\r", &rest) : NULL;
    if (!key || *key == '#')
        return NULL;
    if (!rights_text || strtok_r(NULL, " \t\r", &rest))
        return err_new(STATUS_INVALID_ARG, "expected a key and its categories, two words");
    struct key made = {.text = key, .len = strlen(key)};
    struct err *e = keys_read_rights(rights_text, &made.rights);
    if (e)
        return e;
    if (strcmp(key, "-") == 0) {
        t->open |= made.rights;
        return NULL;
    }
    if (made.len > KEYS_MAX_BYTES)
        return err_new(STATUS_INVALID_ARG, "a key of more than %u bytes", KEYS_MAX_BYTES);
    if (keys_find(t, key, made.len))
        return err_new(STATUS_INVALID_ARG, "a key that an earlier line has");
    if (t->count == KEYS_MAX)
        return err_new(STATUS_INVALID_ARG, "more than %u keys", KEYS_MAX);
    t->keys[t->count++] = made;
    return NULL;
}

/* Behind the byte order mark that some editors write. */
static char *keys_text(const struct keys_table *t)
{
    static const char mark[] = "\xef\xbb\xbf";
    return strncmp(t->text, mark, sizeof(mark) - 1) == 0 ? t->text + sizeof(mark) - 1 : t->text;
}

static struct err *keys_load(struct keys *k)
{
    struct keys_table *t = MEM_NEW(struct keys_table);
    atomic_init(&t->refs, 1);
    struct err *e = file_read(k->path, FILE_BYTES, &t->text, &t->text_len);
    /* What follows a zero byte would not be seen. */
    if (!e && strlen(t->text) < t->text_len)
        e = err_new(STATUS_INVALID_ARG, "%s: expected text, found a zero byte at offset %zu",
                    k->path, strlen(t->text));
    unsigned number = 1;
    for (char *line = e ? NULL : keys_text(t), *next; line && !e; line = next, number++) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        e = err_wrap(keys_read_line(t, line), "%s:%u", k->path, number);
    }
    if (!e && !t->count && !t->open)
        e = err_new(STATUS_INVALID_ARG,
                    "%s: expected lines of a key and its categories, or of - and those that are "
                    "open without a key; found none",
                    k->path);
    if (e) {
        keys_table_unref(t);
        return err_wrap(e, "option --api-keys");
    }
    unsigned count = t->count;
    mutex_lock(&k->lock);
    struct keys_table *old = k->table;
    k->table = t;
    mutex_unlock(&k->lock);
    LOG_INFO("API keys: %u in '%s'", count, k->path);
    keys_table_unref(old);
    return NULL;
}

struct err *keys_new(const char *path, struct keys **ret)
{
    *ret = NULL;
    if (!path)
        return NULL;
    struct keys *k = MEM_NEW(struct keys);
    *k = (struct keys){.path = path};
    mutex_init(&k->lock, MUTEX_RANK_LEAF);
    stamp_watch_due(&k->watch, stamp_file(path), true);
    struct err *e = keys_load(k);
    if (e)
        keys_free(k);
    else
        *ret = k;
    return e;
}

void keys_look(struct keys *k, bool now)
{
    if (!k)
        return;
    if (!stamp_watch_due(&k->watch, stamp_file(k->path), now))
        return;
    struct err *e = keys_load(k);
    if (stamp_watch_read(&k->watch, e))
        LOG_ERROR("the API keys stay as they are: %s", err_message(e));
    err_free(e);
}

keys_rights keys_rights_of(struct keys *k, const char *key, size_t len)
{
    if (len > KEYS_MAX_BYTES)
        return 0;
    struct keys_table *t = keys_table_of(k);
    keys_rights rights = keys_find(t, key, len);
    keys_table_unref(t);
    return rights;
}

keys_rights keys_rights_open(struct keys *k)
{
    struct keys_table *t = keys_table_of(k);
    keys_rights rights = t->open;
    keys_table_unref(t);
    return rights;
}

void keys_free(struct keys *k)
{
    if (!k)
        return;
    keys_table_unref(k->table);
    mutex_fini(&k->lock);
    mem_free(k);
}
