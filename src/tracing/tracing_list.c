#include "tracing/tracing_list.h"

#include "base/log.h"
#include "base/mem.h"
#include "cloud/web/url.h"

#include <stdlib.h>
#include <string.h>

/* Replaces the escapes of a value in place. False where that gives a byte that no header may
 * have. */
static bool tracing_list_unescape(char *value)
{
    size_t len = url_unescape(value, strlen(value), false);
    value[len] = '\0';
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)value[i] < ' ')
            return false;
    return true;
}

/* One entry without the blanks around its parts, NULL where it is none. */
static char *tracing_list_entry(const char *text, size_t len)
{
    static const char blanks[] = " \t";
    const char *end = text + len, *equals = memchr(text, '=', len);
    const char *key_end = equals;
    text += strspn(text, blanks);
    while (key_end > text && strchr(blanks, key_end[-1]))
        key_end--;
    if (!equals || key_end <= text)
        return NULL;
    const char *value = equals + 1;
    while (value < end && strchr(blanks, *value))
        value++;
    while (end > value && strchr(blanks, end[-1]))
        end--;
    size_t key_len = (size_t)(key_end - text), value_len = (size_t)(end - value);
    char *entry = mem_alloc(key_len + value_len + 2);
    memcpy(entry, text, key_len);
    entry[key_len] = '=';
    memcpy(entry + key_len + 1, value, value_len);
    entry[key_len + 1 + value_len] = '\0';
    if (tracing_list_unescape(entry + key_len + 1))
        return entry;
    mem_free(entry);
    return NULL;
}

void tracing_list_read(struct tracing_list *l, const char *variable)
{
    const char *text = getenv(variable);
    l->count = 0;
    for (size_t number = 1; text && *text; number++) {
        size_t len = strcspn(text, ",");
        char *entry = l->count < TRACING_LIST_MOST ? tracing_list_entry(text, len) : NULL;
        if (entry)
            l->entries[l->count++] = entry;
        else if (len)
            LOG_WARN("variable %s: entry %zu is left out: expected key=value, %d at most, with "
                     "other characters as %%XX",
                     variable, number, TRACING_LIST_MOST);
        text += len + (text[len] == ',');
    }
}

void tracing_list_fini(struct tracing_list *l)
{
    for (size_t i = 0; i < l->count; i++)
        mem_free(l->entries[i]);
    l->count = 0;
}
