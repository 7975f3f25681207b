#include "os/process/environment.h"

#include "base/mem.h"
#include "os/mutex.h"

#include <errno.h>
#include <search.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIRST_ROOM 64

/* A place for variables. Who began to read an older one goes on there. */
struct room {
    struct room *older;
    size_t size; /* of texts, with the NULL at the end */
    _Atomic(char *) texts[];
};

static struct mutex lock = MUTEX_INIT(MUTEX_RANK_LIBRARIES);
static struct room *room; /* guarded by lock, like what is below */
static void *made;        /* a tree of the texts that were made here */

/* Stands where a variable was, which keeps the others where they are. Nobody finds it by a name.
 * The C library's getenv reads two bytes at once. */
static char removed[2];

static int text_compare(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* The text as it was made the first time; NULL: no memory. */
static char *text_new(const char *name, size_t name_len, const char *value)
{
    size_t len = strlen(value);
    char *text = mem_try_alloc(name_len + 1 + len + 1, alignof(max_align_t));
    if (!text)
        return NULL;
    memcpy(text, name, name_len);
    text[name_len] = '=';
    memcpy(text + name_len + 1, value, len + 1);
    char **first = tsearch(text, &made, text_compare);
    if (!first || *first != text)
        mem_free(text);
    return first ? *first : NULL;
}

static bool is_of_variable(const char *text, const char *name, size_t name_len)
{
    return strncmp(text, name, name_len) == 0 && text[name_len] == '=';
}

/* Makes a place of our own, with room for one more text and the NULL behind it. The C library
 * reads environ, and so does exec. */
static bool room_ready(void)
{
    /* The C library's code may set it to NULL meanwhile. */
    char **all = __atomic_load_n(&environ, __ATOMIC_ACQUIRE);
    size_t count = 0;
    while (all && all[count])
        count++;
    if (room && all == (char **)room->texts && count + 2 <= room->size)
        return true;
    size_t size = FIRST_ROOM;
    while (size < count + 2)
        size *= 2;
    size_t bytes = sizeof(*room) + size * sizeof(room->texts[0]);
    struct room *next = mem_try_alloc(bytes, alignof(max_align_t));
    if (!next)
        return false;
    memset(next, 0, bytes);
    next->older = room;
    next->size = size;
    for (size_t i = 0; i < count; i++)
        next->texts[i] = all[i];
    room = next;
    __atomic_store_n(&environ, (char **)next->texts, __ATOMIC_RELEASE);
    return true;
}

/* NULL: there is no such variable. */
static _Atomic(char *) *place_of(const char *name, size_t name_len)
{
    for (_Atomic(char *) *at = room->texts; *at; at++)
        if (is_of_variable(*at, name, name_len))
            return at;
    return NULL;
}

/* The text gets a free place, or one at the end. Somebody may have cut off what is behind the end:
 * that stays so. */
static void place_add(char *text)
{
    _Atomic(char *) *at = room->texts;
    while (*at && *at != removed)
        at++;
    if (!*at)
        at[1] = NULL;
    *at = text;
}

/* Guarded by lock. */
static int variable_set(const char *name, size_t name_len, char *text)
{
    if (!text || !room_ready()) {
        errno = ENOMEM;
        return -1;
    }
    _Atomic(char *) *place = place_of(name, name_len);
    if (place)
        *place = text;
    else
        place_add(text);
    return 0;
}

/* The length of a variable's name; 0 and errno: it is none. */
static size_t name_length(const char *name)
{
    size_t len = name ? strcspn(name, "=") : 0;
    if (len > 0 && name[len] != '=')
        return len;
    errno = EINVAL;
    return 0;
}

int environment_set(const char *name, const char *value, int overwrite)
{
    size_t len = name_length(name);
    if (!len)
        return -1;
    mutex_lock(&lock);
    int rc = 0;
    if (overwrite || !getenv(name))
        rc = variable_set(name, len, text_new(name, len, value));
    mutex_unlock(&lock);
    return rc;
}

int environment_put(char *text)
{
    size_t len = strcspn(text, "=");
    if (text[len] != '=') {
        environment_unset(text);
        return 0;
    }
    mutex_lock(&lock);
    int rc = variable_set(text, len, text);
    mutex_unlock(&lock);
    return rc;
}

int environment_unset(const char *name)
{
    size_t len = name_length(name);
    if (!len)
        return -1;
    mutex_lock(&lock);
    bool ready = room_ready();
    if (ready)
        for (_Atomic(char *) *place; (place = place_of(name, len));)
            *place = removed;
    else
        errno = ENOMEM;
    mutex_unlock(&lock);
    return ready ? 0 : -1;
}

int environment_clear(void)
{
    mutex_lock(&lock);
    bool ready = room_ready();
    if (ready)
        for (_Atomic(char *) *at = room->texts; *at; at++)
            *at = removed;
    else
        environ = NULL;
    mutex_unlock(&lock);
    return 0;
}
