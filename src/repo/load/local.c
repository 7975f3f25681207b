#include "repo/load/local.h"

#include "base/mem.h"
#include "base/strbuf.h"
#include "model/version_policy.h"
#include "os/files/beneath.h"
#include "os/files/file.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#define CONFIG_READ_BYTES ((size_t)16 << 20)

static void take_names(struct file_list *l, bool only_dirs, struct local_names *ret)
{
    ret->names = mem_alloc(l->count * sizeof(char *));
    ret->count = 0;
    for (size_t i = 0; i < l->count; i++) {
        if (only_dirs && !l->entries[i].is_dir)
            continue;
        ret->names[ret->count++] = l->entries[i].name;
        l->entries[i].name = NULL;
    }
    file_list_fini(l);
}

struct err *local_models(const char *repository, struct local_names *ret)
{
    struct file_list l;
    struct err *e = file_list_dir(repository, LOCAL_MAX_ENTRIES, &l);
    if (e)
        return err_wrap(e, "failed to read model repository '%s'", repository);
    take_names(&l, true, ret);
    return NULL;
}

struct err *local_directories(const char *model_dir, struct local_names *ret)
{
    struct file_list l;
    struct err *e = file_list_dir(model_dir, LOCAL_MAX_ENTRIES, &l);
    if (!e)
        take_names(&l, true, ret);
    return e;
}

/* Adds a '/' to directories, so that a caller can tell them from files. */
static void mark_directories(struct file_list *l)
{
    for (size_t i = 0; i < l->count; i++) {
        if (!l->entries[i].is_dir)
            continue;
        size_t len = strlen(l->entries[i].name);
        l->entries[i].name = mem_realloc(l->entries[i].name, len + 2);
        memcpy(l->entries[i].name + len, "/", 2);
    }
}

struct err *local_files(const char *model_dir, int64_t version, struct local_names *ret)
{
    struct strbuf path = STRBUF_INIT;
    strbuf_printf(&path, "%s/%" PRId64, model_dir, version);
    struct file_list l;
    struct err *e = file_list_dir(strbuf_str(&path), LOCAL_MAX_ENTRIES, &l);
    strbuf_fini(&path);
    if (e)
        return e;
    mark_directories(&l);
    take_names(&l, false, ret);
    return NULL;
}

void local_names_fini(struct local_names *n)
{
    for (size_t i = 0; i < n->count; i++)
        mem_free(n->names[i]);
    mem_free(n->names);
    *n = (struct local_names){0};
}

/* Reads a file below the model's directory; *ret_text is NULL if it does not exist. */
static struct err *local_read_file(const char *model_dir, const char *file, char **ret_text,
                                   size_t *ret_len, char **ret_path)
{
    struct err *e = beneath_read(model_dir, file, CONFIG_READ_BYTES, ret_text, ret_len);
    if (e && err_code(e) == STATUS_NOT_FOUND) {
        err_free(e);
        e = NULL;
    }
    *ret_path = e ? NULL : file_join(model_dir, file);
    return e;
}

struct err *local_read_config(const char *model_dir, const char *name, char **ret_text,
                              size_t *ret_len, char **ret_path)
{
    *ret_text = NULL;
    if (name && *name) {
        struct strbuf file = STRBUF_INIT;
        strbuf_printf(&file, "configs/%s.pbtxt", name);
        struct err *e = local_read_file(model_dir, strbuf_str(&file), ret_text, ret_len, ret_path);
        strbuf_fini(&file);
        if (e || *ret_text)
            return e;
        mem_free(*ret_path);
    }
    return local_read_file(model_dir, "config.pbtxt", ret_text, ret_len, ret_path);
}

static bool has_configuration(const char *path)
{
    char *config = file_join(path, "config.pbtxt");
    bool has = file_exists(config);
    mem_free(config);
    return has;
}

enum local_kind local_look(const char *path)
{
    struct local_names names = {0};
    struct err *e = local_directories(path, &names);
    if (e) {
        err_free(e);
        return LOCAL_UNREADABLE;
    }
    size_t versions = 0;
    int64_t number;
    for (size_t i = 0; i < names.count; i++)
        versions += version_policy_parse_dir(names.names[i], &number);
    enum local_kind kind = LOCAL_REPOSITORY;
    if (has_configuration(path) || (names.count && versions == names.count))
        kind = LOCAL_MODEL;
    else if (!names.count)
        kind = LOCAL_EMPTY;
    local_names_fini(&names);
    return kind;
}
