#include "repo/override.h"

#include "base/buf.h"
#include "base/mem.h"
#include "codec/base64.h"
#include "os/pool.h"
#include "os/files/tree.h"
#include "repo/repo.h"
#include "repo/source.h"

#include <stdlib.h>
#include <string.h>

const struct repo_param *override_config(const struct repo_param *params, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (params[i].kind == REPO_PARAM_CONFIG)
            return &params[i];
    return NULL;
}

static struct err *override_check_file(const struct repo_param *p, size_t *names_bytes)
{
    if (!tree_name_ok(p->name))
        return err_new(
            STATUS_INVALID_ARG,
            "Invalid file parameter 'file:%s': it must stay within the model directory, in "
            "%u parts of %u bytes at most; expected 'file:<version>/<name>'",
            p->name, TREE_MAX_DEPTH, TREE_MAX_PART);
    *names_bytes += strlen(p->name);
    if (*names_bytes > REPO_MAX_NAMES_BYTES)
        return err_new(STATUS_INVALID_ARG,
                       "too many file parameters: their names may have %zu bytes together",
                       REPO_MAX_NAMES_BYTES);
    return NULL;
}

static int override_by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Refuses names that occur twice. The names are sorted first: comparing each with all others
 * would take seconds for many names, on a thread that serves others. */
static struct err *check_twice(const struct repo_param *params, size_t count)
{
    const char **names = mem_alloc((count + 1) * sizeof(*names));
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        if (params[i].kind != REPO_PARAM_CONFIG)
            names[n++] = params[i].name;
    qsort(names, n, sizeof(*names), override_by_name);
    struct err *e = NULL;
    for (size_t i = 1; !e && i < n; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            e = err_new(STATUS_INVALID_ARG, "file parameter 'file:%s' is given twice", names[i]);
    mem_free(names);
    return e;
}

static struct err *override_check_count(size_t count)
{
    if (count <= REPO_MAX_PARAMS)
        return NULL;
    return err_new(STATUS_INVALID_ARG, "too many load parameters: expected at most %u",
                   REPO_MAX_PARAMS);
}

struct err *override_check(const struct repo_param *params, size_t count)
{
    const struct repo_param *config = override_config(params, count);
    struct err *e = override_check_count(count);
    size_t names_bytes = 0;
    for (size_t i = 0; !e && i < count; i++) {
        if (&params[i] == config)
            continue;
        if (params[i].kind == REPO_PARAM_CONFIG)
            e = err_new(STATUS_INVALID_ARG, "load parameter 'config' is given twice");
        else if (!config)
            e = err_new(STATUS_INVALID_ARG,
                        "Load parameter 'config' must be specified for model file override");
        else
            e = override_check_file(&params[i], &names_bytes);
    }
    return e ? e : check_twice(params, count);
}

/* True if the bytes begin like a file that the system's loader accepts as a library, whatever
 * its name is. */
static bool is_library(const void *data, size_t len)
{
    return len >= 4 && memcmp(data,
                              "\x7f"
                              "ELF",
                              4) == 0;
}

static struct err *write_file(const char *dir, const char *name, bool libraries, const void *data,
                              size_t len)
{
    if (!libraries && is_library(data, len))
        return err_new(STATUS_INVALID_ARG,
                       "it is a shared library, which a load request may not bring: put it into "
                       "the model repository, or allow it with --allow-library-upload");
    return tree_write(dir, name, data, len);
}

static struct err *write_base64(const char *dir, const struct repo_param *p, bool libraries)
{
    struct buf *decoded;
    struct err *e = pool_buf(base64_room(p->len), &decoded);
    if (e)
        return e;
    size_t len;
    if (base64_decode(p->data, p->len, BASE64_LINES, decoded->data, &len))
        e = write_file(dir, p->name, libraries, decoded->data, len);
    else
        e = err_new(STATUS_INVALID_ARG, "expected base64");
    buf_unref(decoded);
    return e;
}

struct err *override_write(const struct repo_param *params, size_t count, bool libraries,
                           struct source **ret)
{
    struct source *made = NULL;
    struct err *e = NULL;
    for (size_t i = 0; !e && i < count; i++) {
        const struct repo_param *p = &params[i];
        if (p->kind == REPO_PARAM_CONFIG)
            continue;
        if (!made) {
            char *dir;
            e = tree_make(TREE_UPLOAD, &dir);
            if (e)
                break;
            made = source_new(dir, true);
        }
        e = p->kind == REPO_PARAM_FILE ? write_file(made->dir, p->name, libraries, p->data, p->len)
                                       : write_base64(made->dir, p, libraries);
        e = err_wrap(e, "Invalid file parameter 'file:%s'", p->name);
    }
    if (e) {
        source_unref(made);
        return e;
    }
    *ret = made;
    return NULL;
}
