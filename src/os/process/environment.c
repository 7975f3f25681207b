#include "os/process/environment.h"

#include "base/mem.h"
#include "os/mutex.h"

#include <errno.h>
#include <search.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#define FIRST_ROOM 64

/* A place for variables. Who began to read an older one goes on there. */
struct room {
    struct room *older;
    size_t size; /* of texts, with the NULL at the end */
    _Atomic(char *) texts[];
};

static struct mutex lock = MUTEX_INIT(MUTEX_RANK_LEAF);
static struct room *room; /* guarded by lock, like what is below */
static void *made;        /* a tree of the texts that were made here */

/* Stands where a variable was, which keeps the others where they are. Nobody finds it by a name.
 * The C library's getenv reads two bytes at once. */
static char removed[2];

static int text_compare(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* The text as it was made the first time. */
static char *text_new(const char *name, size_t name_len, const char *value)
{
    size_t len = strlen(value);
    char *text = mem_alloc(name_len + 1 + len + 1);
    memcpy(text, name, name_len);
    text[name_len] = '=';
    memcpy(text + name_len + 1, value, len + 1);
    char **first = tsearch(text, &made, text_compare);
    if (first && *first != text) {
        mem_free(text);
        text = *first;
    }
    return text;
}

static bool is_of_variable(const char *text, const char *name, size_t name_len)
{
    return strncmp(text, name, name_len) == 0 && text[name_len] == '=';
}

/* The C library reads environ, and so does exec. */
static void room_new(size_t count)
{
    size_t size = FIRST_ROOM;
    while (size < count + 2)
        size *= 2;
    struct room *next = mem_zalloc(sizeof(*next) + size * sizeof(next->texts[0]));
    *next = (struct room){.older = room, .size = size};
    for (size_t i = 0; i < count; i++)
        next->texts[i] = environ[i];
    room = next;
    __atomic_store_n(&environ, (char **)next->texts, __ATOMIC_RELEASE);
}

/* Makes a place of our own, with room for one more text. */
static void room_ready(void)
{
    size_t count = 0;
    while (environ && environ[count])
        count++;
    if (!room || environ != (char **)room->texts || count + 2 > room->size)
        room_new(count);
}

/* NULL: there is no such variable. */
static _Atomic(char *) *place_of(const char *name, size_t name_len)
{
    for (_Atomic(char *) *at = room->texts; *at; at++)
        if (is_of_variable(*at, name, name_len))
            return at;
    return NULL;
}

static _Atomic(char *) *place_free(void)
{
    _Atomic(char *) *at = room->texts;
    while (*at && *at != removed)
        at++;
    return at;
}

static bool names_a_variable(const char *name, size_t name_len)
{
    if (name_len > 0 && name[name_len] != '=')
        return true;
    errno = EINVAL;
    return false;
}

int environment_set(const char *name, const char *value, int overwrite)
{
    size_t len = name ? strcspn(name, "=") : 0;
    if (!names_a_variable(name, len))
        return -1;
    mutex_lock(&lock);
    room_ready();
    _Atomic(char *) *place = place_of(name, len);
    if (!place || overwrite)
        *(place ? place : place_free()) = text_new(name, len, value);
    mutex_unlock(&lock);
    return 0;
}

int environment_put(char *text)
{
    size_t len = strcspn(text, "=");
    if (text[len] != '=')
        return environment_unset(text);
    mutex_lock(&lock);
    room_ready();
    _Atomic(char *) *place = place_of(text, len);
    *(place ? place : place_free()) = text;
    mutex_unlock(&lock);
    return 0;
}

int environment_unset(const char *name)
{
    size_t len = name ? strcspn(name, "=") : 0;
    if (!names_a_variable(name, len))
        return -1;
    mutex_lock(&lock);
    room_ready();
    for (_Atomic(char *) *place; (place = place_of(name, len));)
        *place = removed;
    mutex_unlock(&lock);
    return 0;
}
