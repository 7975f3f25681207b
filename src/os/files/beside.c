#include "os/files/beside.h"

#include "base/mem.h"
#include "base/strbuf.h"
#include "os/dl.h"
#include "os/files/file.h"

#include <string.h>

/* An address in this library: dl_path_of finds the library's file with it. */
static const char here;

/* Find the path of a module: in the directory of libtritonserver.so; if a program links our code
 * statically, in the `lib` directory of its tree. The caller owns the path, which may not exist. */
static char *beside_find(const char *file)
{
    static const char *const places[] = {"", "../lib/", "../../lib/"};
    char *self = dl_path_of(&here);
    char *slash = self ? strrchr(self, '/') : NULL;
    struct strbuf path = STRBUF_INIT;
    for (size_t i = 0; slash && i < sizeof(places) / sizeof(places[0]); i++) {
        strbuf_fini(&path);
        path = (struct strbuf)STRBUF_INIT;
        strbuf_printf(&path, "%.*s/%s%s", (int)(slash - self), self, places[i], file);
        if (file_exists(strbuf_str(&path)))
            break;
    }
    mem_free(self);
    return strbuf_take(&path);
}

struct err *beside_load(const struct beside *b, const void **ret)
{
    char *path = beside_find(b->file);
    struct dl *dl = NULL;
    struct err *e = dl_open(path, &dl);
    const uint32_t *found = dl ? dl_symbol(dl, b->symbol) : NULL;
    if (!e && (!found || *found != b->version))
        e = err_new(STATUS_INTERNAL, "'%s' is of another version of the server", path);
    if (e)
        dl_close(dl);
    else
        *ret = found;
    mem_free(path);
    return err_wrap(e, "%s the module %s", b->needed_by, b->file);
}

/* The path of the library's file, or of the program that the code is linked into, without links.
 * *ret_slash: its last slash. NULL if it is not known. The caller frees it (mem_free). */
static char *own_path(char **ret_slash)
{
    char *named = dl_path_of(&here);
    char *path = named ? file_absolute(named) : NULL;
    mem_free(named);
    *ret_slash = path ? strrchr(path, '/') : NULL;
    if (*ret_slash)
        return path;
    mem_free(path);
    return NULL;
}

char *beside_prefix(void)
{
    static const char library[] = "/libtritonserver.so";
    char *slash, *path = own_path(&slash);
    if (path && strncmp(slash, library, sizeof(library) - 1) == 0) {
        *slash = '\0';
        slash = strrchr(path, '/');
        if (slash) {
            *slash = '\0';
            return path;
        }
    }
    mem_free(path);
    return NULL;
}

char *beside_program(const char *program)
{
    static const char *const places[] = {"/../bin", ""};
    char *slash, *path = own_path(&slash), *found = NULL;
    for (size_t i = 0; path && !found && i < sizeof(places) / sizeof(places[0]); i++) {
        struct strbuf sb = STRBUF_INIT;
        strbuf_printf(&sb, "%.*s%s/%s", (int)(slash - path), path, places[i], program);
        if (file_exists(strbuf_str(&sb)))
            found = strbuf_take(&sb);
        strbuf_fini(&sb);
    }
    mem_free(path);
    return found;
}
