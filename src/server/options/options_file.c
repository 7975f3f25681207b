#include "server/options/options_row.h"

#include "base/mem.h"
#include "os/files/file.h"

#include <string.h>

#define MAX_FILE_BYTES ((size_t)1 << 20)

static bool options_file_is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Removes blanks at both ends; the text then ends in NUL. */
static char *options_file_trim(char *from, char *end)
{
    while (from < end && options_file_is_blank(*from))
        from++;
    while (end > from && options_file_is_blank(end[-1]))
        end--;
    *end = '\0';
    return from;
}

/* Reads one line that ends in NUL: `name = value`. */
static struct err *read_line(char *line, struct options *o)
{
    char *text = options_file_trim(line, line + strlen(line));
    if (!*text || *text == '#')
        return NULL;
    char *equals = strchr(text, '=');
    if (!equals)
        return err_new(STATUS_INVALID_ARG, "expected 'name = value', found '%s'", text);
    const char *value = options_file_trim(equals + 1, equals + strlen(equals));
    const char *name = options_file_trim(text, equals);
    const struct options_row *row = options_row_find(name, strlen(name));
    if (!row) {
        const char *nearest = options_row_nearest(name, strlen(name));
        return err_new(STATUS_INVALID_ARG, "unknown option '%s'%s%s%s", name,
                       nearest ? ", did you mean '" : "", nearest ? nearest : "",
                       nearest ? "'?" : "");
    }
    if (strcmp(row->name, "config") == 0)
        return err_new(STATUS_INVALID_ARG, "option config cannot be given in a file");
    struct err *e = options_value_set(row, options_value_keep(o, value, strlen(value)), o);
    if (!e)
        options_row_warn(row, o);
    return e;
}

struct err *options_file_read(const char *path, struct options *o)
{
    char *text;
    size_t len;
    struct err *e = file_read(path, MAX_FILE_BYTES, &text, &len);
    if (e)
        return err_wrap(e, "option --config");
    if (memchr(text, '\0', len)) {
        mem_free(text);
        return err_new(STATUS_INVALID_ARG, "option --config: '%s' holds a NUL byte", path);
    }
    size_t number = 0;
    for (char *line = text, *next; line && !e; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        number++;
        e = read_line(line, o);
    }
    mem_free(text);
    o->repositories_of_file = o->repository_count;
    options_front_of_file(&o->http_restrictions);
    options_front_of_file(&o->grpc_restrictions);
    options_trace_of_file(&o->trace);
    return e ? err_wrap(e, "%s:%zu", path, number) : NULL;
}
