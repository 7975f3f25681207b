#include "options.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <yyjson.h>

#include "common/bconfig.h"
#include "common/berr.h"

static const uint64_t MIB = 1 << 20;
enum { STUB_SECONDS = 30 };

void options_free(struct options *options)
{
    if (!options)
        return;
    free(options->folder);
    free(options->backend);
    free(options->region_prefix);
    free(options->executable);
    free(options);
}

/* Reads a whole number; a setting that is not there leaves it. */
static TRITONSERVER_Error *options_number(yyjson_val *settings, const char *name, int64_t *value)
{
    const char *text = yyjson_get_str(yyjson_obj_get(settings, name));
    if (!text)
        return NULL;
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (end == text || *end || errno)
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG, "%s is a whole number, not '%s'", name,
                        text);
    *value = number;
    return NULL;
}

static TRITONSERVER_Error *options_bounded(yyjson_val *settings, const char *name, int64_t least,
                                           const char *wrong, int64_t *value)
{
    TRITONSERVER_Error *err = options_number(settings, name, value);
    if (!err && *value < least)
        err = berr_new(TRITONSERVER_ERROR_INVALID_ARG, "%s %s", name, wrong);
    return err;
}

static TRITONSERVER_Error *options_read(struct options *options, yyjson_val *settings)
{
    int64_t first = (int64_t)MIB, growth = (int64_t)MIB, threads = 1;
    options->stub_seconds = STUB_SECONDS;
    TRITONSERVER_Error *err = options_bounded(settings, "shm-growth-byte-size", 1,
                                              "can't be smaller than or equal to zero.", &growth);
    if (!err)
        err = options_bounded(settings, "shm-default-byte-size", (int64_t)MIB,
                              "can't be smaller than 1 MiB (1048576)", &first);
    if (!err)
        err = options_bounded(settings, "thread-pool-size", 1, "can't be less than 1.", &threads);
    if (!err)
        err = options_bounded(settings, "stub-timeout-seconds", 1,
                              "can't be smaller than or equal to zero.", &options->stub_seconds);
    const char *prefix = yyjson_get_str(yyjson_obj_get(settings, "shm-region-prefix-name"));
    if (!err && prefix && !*prefix)
        err = berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                       "shm-region-prefix-name must at least contain one character.");
    if (err)
        return err;
    /* Whole pages, or the mapping would end within one. */
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    options->default_bytes = ((uint64_t)first + page - 1) / page * page;
    options->growth_bytes = ((uint64_t)growth + page - 1) / page * page;
    options->region_prefix = strdup(prefix ? prefix : "triton_python_backend_shm_region_");
    const char *executable = yyjson_get_str(yyjson_obj_get(settings, "python-executable"));
    options->executable = executable ? strdup(executable) : NULL;
    return options->region_prefix && (!executable || options->executable) ? NULL : berr_no_memory();
}

/* What is read here or by the server, and what only the reference reads. */
static const char *const OPTIONS_NAMES[] = {
    "shm-default-byte-size",  "shm-growth-byte-size", "shm-region-prefix-name", "thread-pool-size",
    "shm_message_queue_size", "stub-timeout-seconds", "python-executable",      NULL};

static char *join_path(const char *folder, const char *name)
{
    char *path;
    return asprintf(&path, "%s/%s", folder, name) < 0 ? NULL : path;
}

/* Where the backend's own files are: beside the library, or, for a backend that is a model.py of
 * its
 * own, in the folder of the backend "python". */
static TRITONSERVER_Error *options_places(struct options *options, const char *location,
                                          yyjson_val *settings)
{
    const char *folder = yyjson_get_str(yyjson_obj_get(settings, "backend-directory"));
    char *beside = join_path(location, "triton_python_backend_utils.py");
    if (!beside)
        return berr_no_memory();
    bool is_beside = access(beside, R_OK) == 0;
    free(beside);
    options->folder =
        is_beside ? strdup(location) : join_path(folder ? folder : location, "python");
    char *model = join_path(location, "model.py");
    bool is_backend = model && access(model, R_OK) == 0;
    free(model);
    options->backend = strdup(is_backend ? location : "");
    return options->folder && options->backend ? NULL : berr_no_memory();
}

TRITONSERVER_Error *options_new(TRITONBACKEND_Backend *backend, struct options **ret_options)
{
    TRITONBACKEND_ArtifactType type;
    const char *location;
    yyjson_doc *doc = NULL;
    struct options *options = calloc(1, sizeof *options);
    if (!options)
        return berr_no_memory();
    TRITONSERVER_Error *err = TRITONBACKEND_BackendArtifacts(backend, &type, &location);
    if (!err)
        err = bconfig_of_backend(backend, &doc);
    yyjson_val *settings = doc ? yyjson_obj_get(yyjson_doc_get_root(doc), "cmdline") : NULL;
    if (!err)
        err = options_read(options, settings);
    if (!err)
        err = options_places(options, location, settings);
    if (!err)
        bconfig_warn_unknown(backend, settings, OPTIONS_NAMES);
    yyjson_doc_free(doc);
    if (err)
        options_free(options);
    else
        *ret_options = options;
    return err;
}
