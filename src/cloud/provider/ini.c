#include "cloud/provider/ini.h"

#include "base/mem.h"

#include <string.h>

#define SPACES " \t\r"

/* Removes spaces at both ends. */
static size_t ini_trim(const char **at, size_t len)
{
    while (len && strchr(SPACES, **at)) {
        ++*at;
        len--;
    }
    while (len && strchr(SPACES, (*at)[len - 1]))
        len--;
    return len;
}

static bool same_section(const char *line, size_t len, const char *section)
{
    const char *inside = line + 1;
    const char *end = memchr(line, ']', len);
    if (!end)
        return false;
    size_t left = ini_trim(&inside, (size_t)(end - inside));
    for (; left && *section; section++) {
        if (*inside != *section && !(*section == ' ' && *inside == '\t'))
            return false;
        do {
            inside++;
            left--;
        } while (left && *section == ' ' && strchr(SPACES, *inside));
    }
    return !left && !*section;
}

char *ini_find(const char *text, const char *section, const char *name)
{
    char *found = NULL;
    bool here = false;
    for (const char *line = text; *line;) {
        size_t whole = strcspn(line, "\n");
        const char *end = line + whole;
        const char *at = line;
        bool nested = *line == ' ' || *line == '\t';
        size_t len = ini_trim(&at, whole);
        line = *end ? end + 1 : end;
        if (!len || *at == '#' || *at == ';')
            continue;
        if (*at == '[') {
            here = same_section(at, len, section);
            if (here && !name && !found)
                found = mem_strdup("");
            continue;
        }
        const char *equals = memchr(at, '=', len);
        if (!here || !name || nested || !equals)
            continue;
        size_t key_len = ini_trim(&at, (size_t)(equals - at));
        const char *value = equals + 1;
        size_t value_len = ini_trim(&value, (size_t)(end - value));
        if (key_len != strlen(name) || strncmp(at, name, key_len) != 0)
            continue;
        mem_free(found);
        found = mem_strndup(value, value_len);
    }
    return found;
}
