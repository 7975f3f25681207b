#include "cloud/provider/credential_file.h"

#include "base/mem.h"
#include "os/files/file.h"

#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

#define MAX_BYTES ((size_t)4 << 20)

static yyjson_val *longest(yyjson_val *entries, const char *path)
{
    yyjson_val *best = NULL;
    size_t best_len = 0;
    yyjson_obj_iter it = yyjson_obj_iter_with(entries);
    yyjson_val *key;
    while ((key = yyjson_obj_iter_next(&it))) {
        size_t len = yyjson_get_len(key);
        if (strncmp(path, yyjson_get_str(key), len) != 0 || (best && len < best_len))
            continue;
        best = yyjson_obj_iter_get_val(key);
        best_len = len;
    }
    return best;
}

struct err *credential_file_find(const char *kind, const char *path, struct credential_entry *ret)
{
    const char *file = getenv("TRITON_CLOUD_CREDENTIAL_PATH");
    *ret = (struct credential_entry){0};
    if (!file || !*file)
        return NULL;
    char *text;
    size_t len;
    struct err *e = file_read(file, MAX_BYTES, &text, &len);
    if (e)
        return err_wrap(e, "TRITON_CLOUD_CREDENTIAL_PATH");
    yyjson_read_err why;
    ret->doc = yyjson_read_opts(text, len, 0, NULL, &why);
    if (!ret->doc)
        e = err_new(STATUS_INVALID_ARG, "%s: at byte %zu: %s", file, why.pos, why.msg);
    else
        ret->entry = longest(yyjson_obj_get(yyjson_doc_get_root(ret->doc), kind), path);
    mem_free(text);
    if (!e && !ret->entry)
        e = err_new(STATUS_NOT_FOUND,
                    "Cannot match credential for path  %s: no entry of \"%s\" in %s", path, kind,
                    file);
    if (e)
        credential_file_fini(ret);
    return e;
}

const char *credential_file_text(const struct credential_entry *e, const char *member)
{
    yyjson_val *v = member ? yyjson_obj_get(e->entry, member) : e->entry;
    const char *text = yyjson_get_str(v);
    return text ? text : "";
}

void credential_file_fini(struct credential_entry *e)
{
    yyjson_doc_free(e->doc);
    *e = (struct credential_entry){0};
}
