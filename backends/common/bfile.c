#include "bfile.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "berr.h"

TRITONSERVER_Error *bfile_path(TRITONBACKEND_Model *model, yyjson_val *config, const char *usual,
                               char **ret_path)
{
    TRITONBACKEND_ArtifactType kind;
    const char *folder;
    uint64_t version;
    TRITONSERVER_Error *err = TRITONBACKEND_ModelRepository(model, &kind, &folder);
    if (!err)
        err = TRITONBACKEND_ModelVersion(model, &version);
    if (err)
        return err;
    const char *file = yyjson_get_str(yyjson_obj_get(config, "default_model_filename"));
    char *path;
    if (asprintf(&path, "%s/%llu/%s", folder, (unsigned long long)version,
                 file && *file ? file : usual) < 0)
        return berr_no_memory();
    *ret_path = path;
    return NULL;
}

static TRITONSERVER_Error *not_regular(const char *path, const char *model)
{
    return berr_new(TRITONSERVER_ERROR_INVALID_ARG, "'%s' of model '%s' is not a regular file",
                    path, model);
}

TRITONSERVER_Error *bfile_check_kind(const char *path, const char *model)
{
    struct stat status;
    if (stat(path, &status) != 0 || S_ISREG(status.st_mode) || S_ISDIR(status.st_mode))
        return NULL;
    return not_regular(path, model);
}

TRITONSERVER_Error *bfile_check_folder(const char *path, const char *model)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    FTS *tree =
        folder ? fts_open((char *[]){folder, NULL}, FTS_PHYSICAL | FTS_NOCHDIR, NULL) : NULL;
    TRITONSERVER_Error *err = tree ? NULL : berr_no_memory();
    for (FTSENT *entry; !err && (entry = fts_read(tree));)
        err = bfile_check_kind(entry->fts_path, model);
    if (tree)
        fts_close(tree);
    free(folder);
    return err;
}

bool bfile_climbs(const char *file)
{
    bool climbs = false;
    for (const char *part = file; part && !climbs; part = strchr(part, '/')) {
        part += *part == '/' ? 1 : 0;
        climbs = part[0] == '.' && part[1] == '.' && (part[2] == '/' || part[2] == '\0');
    }
    return climbs;
}

TRITONSERVER_Error *bfile_of_model(TRITONBACKEND_Model *model, yyjson_val *config,
                                   const char *usual, char **ret_path)
{
    const char *name;
    char *path;
    struct stat status;
    TRITONSERVER_Error *err = TRITONBACKEND_ModelName(model, &name);
    if (!err)
        err = bfile_path(model, config, usual, &path);
    if (err)
        return err;
    if (stat(path, &status) != 0) {
        err = berr_new(TRITONSERVER_ERROR_UNAVAILABLE, "unable to find '%s' for model '%s': %s",
                       path, name, strerror(errno));
    } else {
        err = bfile_check_kind(path, name);
    }
    if (err) {
        free(path);
        return err;
    }
    *ret_path = path;
    return NULL;
}

/* Sets errno if it fails. */
static bool read_whole(int file, char *content, size_t size)
{
    size_t done = 0;
    ssize_t got = 1;
    while (done < size && got > 0) {
        got = read(file, content + done, size - done);
        done += got > 0 ? (size_t)got : 0;
    }
    if (got == 0)
        errno = EIO; /* it has shrunk */
    return done == size;
}

TRITONSERVER_Error *bfile_read(const char *path, const char *model, void **ret_content,
                               size_t *ret_size)
{
    TRITONSERVER_Error *err = bfile_check_kind(path, model);
    if (err)
        return err;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat status = {0};
    char *content = NULL;
    bool opened = file >= 0 && fstat(file, &status) == 0, regular = S_ISREG(status.st_mode);
    if (opened && regular)
        content = malloc((size_t)status.st_size + 1);
    bool whole = content && read_whole(file, content, (size_t)status.st_size);
    int reason = errno;
    if (file >= 0)
        close(file);
    if (!whole) {
        free(content);
        return opened && !regular
                   ? not_regular(path, model)
                   : berr_new(TRITONSERVER_ERROR_INTERNAL, "reading '%s' of model '%s': %s", path,
                              model, strerror(reason));
    }
    *ret_content = content;
    *ret_size = (size_t)status.st_size;
    return NULL;
}
