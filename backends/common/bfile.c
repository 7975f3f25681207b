#include "bfile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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

TRITONSERVER_Error *bfile_check_kind(const char *path, const char *model)
{
    struct stat status;
    if (stat(path, &status) != 0 || S_ISREG(status.st_mode) || S_ISDIR(status.st_mode))
        return NULL;
    return berr_new(TRITONSERVER_ERROR_INVALID_ARG, "'%s' of model '%s' is not a regular file",
                    path, model);
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

TRITONSERVER_Error *bfile_read(const char *path, const char *model, void **ret_content,
                               size_t *ret_size)
{
    TRITONSERVER_Error *err = bfile_check_kind(path, model);
    if (err)
        return err;
    FILE *file = fopen(path, "re");
    long size = -1;
    char *content = NULL;
    if (file && fseek(file, 0, SEEK_END) == 0)
        size = ftell(file);
    if (size >= 0)
        content = malloc((size_t)size + 1);
    bool whole = content && fseek(file, 0, SEEK_SET) == 0 &&
                 fread(content, 1, (size_t)size, file) == (size_t)size;
    int reason = errno;
    if (file)
        fclose(file);
    if (!whole) {
        free(content);
        return berr_new(TRITONSERVER_ERROR_INTERNAL, "reading '%s' of model '%s': %s", path, model,
                        strerror(reason));
    }
    *ret_content = content;
    *ret_size = (size_t)size;
    return NULL;
}
