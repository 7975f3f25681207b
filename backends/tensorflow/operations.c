#include "operations.h"

#include <ctype.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "../common/berr.h"
#include "../common/bfile.h"
#include "messages.h"

/* A library that TensorFlow has loaded. Its file may be gone or have another content now. */
struct library {
    struct library *next;
    TF_Library *handle;
    char *path;
    size_t size;
    uint64_t digest;
};

static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;
static struct library *loaded; /* guarded by `loading`; never freed, as the libraries are not */

/* FNV-1a with 64 bits */
static uint64_t content_digest(const unsigned char *content, size_t size)
{
    uint64_t digest = 0xcbf29ce484222325;
    for (size_t i = 0; i < size; i++)
        digest = (digest ^ content[i]) * 0x100000001b3;
    return digest;
}

static const struct library *find_same_content(size_t size, uint64_t digest)
{
    const struct library *library = loaded;
    while (library && (library->size != size || library->digest != digest))
        library = library->next;
    return library;
}

/* Whether bytes have this name as a text of its own: the names of operations are made of letters,
 * digits, '_' and '>'. */
static bool has_text(const char *bytes, size_t size, struct wire name)
{
    size_t length = wire_size(name);
    const char *at = bytes, *end = bytes + size;
    while ((at = memmem(at, (size_t)(end - at), name.at, length))) {
        bool begins = at == bytes || !(isalnum((unsigned char)at[-1]) || memchr("_>", at[-1], 2));
        if (begins && at + length < end && at[length] == '\0')
            return true;
        at++;
    }
    return false;
}

/* Whether the constants of a library's code have this name. A library is asked before it is
 * loaded, because then it is too late. */
static bool has_constant(const char *content, size_t size, struct wire name)
{
    ElfW(Ehdr) head;
    ElfW(Shdr) section;
    if (size < sizeof head)
        return false;
    memcpy(&head, content, sizeof head);
    if (head.e_shoff > size || (size - head.e_shoff) / sizeof section < head.e_shnum)
        return false;
    for (size_t i = 0; i < head.e_shnum; i++) {
        memcpy(&section, content + head.e_shoff + i * sizeof section, sizeof section);
        bool constants = section.sh_type == SHT_PROGBITS &&
                         (section.sh_flags & (SHF_ALLOC | SHF_EXECINSTR)) == SHF_ALLOC;
        if (constants && section.sh_offset <= size && section.sh_size <= size - section.sh_offset &&
            has_text(content + section.sh_offset, section.sh_size, name))
            return true;
    }
    return false;
}

/* Finds an operation of an earlier library that a new one has too; empty if there is none. */
static struct wire find_again(const struct library *library, const char *content, size_t size)
{
    TF_Buffer list = TF_GetOpList(library->handle);
    const unsigned char *bytes = list.data;
    struct wire rest = {.at = bytes, .end = bytes + list.length};
    struct wire_field field;
    while (wire_next(&rest, &field)) {
        struct wire name = message_part(field.content, OPERATION_NAME);
        if (field.number == OPERATION_LIST_OPERATION && has_constant(content, size, name))
            return name;
    }
    return (struct wire){0};
}

/* TensorFlow loads no path twice. */
static TRITONSERVER_Error *refuse_twice(const struct model *model, const char *path,
                                        const char *content, size_t size)
{
    static const char advice[] = "TensorFlow cannot replace it: the server has to be started again";
    for (const struct library *library = loaded; library; library = library->next) {
        struct wire name = find_again(library, content, size);
        if (wire_size(name))
            return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                            "unable to load model '%s': '%s' has the operation '%.*s', which '%s' "
                            "has given TensorFlow before, with another content. %s",
                            model->name, path, (int)wire_size(name), (const char *)name.at,
                            library->path, advice);
        if (strcmp(library->path, path) == 0)
            return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                            "unable to load model '%s': '%s' had another content when it was "
                            "loaded before. %s",
                            model->name, path, advice);
    }
    return NULL;
}

static TRITONSERVER_Error *load_and_list(const struct model *model, const char *path, size_t size,
                                         uint64_t digest)
{
    struct library *library = calloc(1, sizeof *library);
    char *copy = strdup(path);
    TRITONSERVER_Error *err = NULL;
    if (library && copy) {
        TF_Status *status = TF_NewStatus();
        *library = (struct library){.next = loaded, .path = copy, .size = size, .digest = digest};
        library->handle = TF_LoadLibrary(path, status);
        err = runtime_err(status, "loading a library of operations for model", model->name);
    } else {
        err = berr_no_memory();
    }
    if (!err) {
        loaded = library;
        return NULL;
    }
    free(copy);
    free(library);
    return err;
}

static TRITONSERVER_Error *load_unless_same(const struct model *model, const char *path)
{
    void *content;
    size_t size;
    TRITONSERVER_Error *err = bfile_read(path, model->name, &content, &size);
    if (err)
        return berr_about(err, "tensorflow error in loading a library of operations for model '%s'",
                          model->name);
    uint64_t digest = content_digest(content, size);
    pthread_mutex_lock(&loading);
    if (!find_same_content(size, digest)) {
        err = refuse_twice(model, path, content, size);
        if (!err)
            err = load_and_list(model, path, size, digest);
    }
    pthread_mutex_unlock(&loading);
    free(content);
    return err;
}

TRITONSERVER_Error *operations_load(const struct model *model)
{
    size_t index, count;
    yyjson_val *file;
    TRITONSERVER_Error *err = NULL;
    yyjson_val *files =
        yyjson_obj_get(yyjson_obj_get(model->config, "model_operations"), "op_library_filename");
    yyjson_arr_foreach(files, index, count, file)
    {
        if (!err)
            err = load_unless_same(model, yyjson_get_str(file));
    }
    return err;
}
