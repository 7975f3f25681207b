#include "repo/load_labels.h"

#include "base/mem.h"
#include "model/config.h"
#include "model/labels.h"
#include "os/file.h"
#include "serve/version.h"

#include <stdbool.h>
#include <string.h>

/* A name that stays below the directory it is looked up in. */
static bool stays_inside(const char *name)
{
    if (*name == '/')
        return false;
    for (const char *part = name; part; part = strchr(part, '/')) {
        part += *part == '/';
        if (strncmp(part, "..", 2) == 0 && (part[2] == '/' || part[2] == '\0'))
            return false;
    }
    return true;
}

static struct err *load_one(const struct model_io *io, const char *model_dir, struct labels **ret)
{
    if (!stays_inside(io->label_filename))
        return err_new(
            STATUS_INVALID_ARG,
            "output '%s': label_filename '%s' leaves the model's directory; expected a file in it",
            io->name, io->label_filename);
    char *path = file_join(model_dir, io->label_filename);
    char *text = NULL;
    size_t len;
    struct err *e = file_read(path, LABELS_MAX_BYTES, &text, &len);
    if (!e)
        e = labels_parse(text, len, path, ret);
    mem_free(text);
    mem_free(path);
    return err_wrap(e, "labels of output '%s'", io->name);
}

struct err *load_labels(const struct model_config *config, const char *model_dir,
                        struct labels ***ret)
{
    struct labels **all = mem_zalloc(config->output_count * sizeof(struct labels *));
    for (uint32_t i = 0; i < config->output_count; i++) {
        if (!*config->outputs[i].label_filename)
            continue;
        struct err *e = load_one(&config->outputs[i], model_dir, &all[i]);
        if (e) {
            version_free_labels(all, config->output_count);
            return e;
        }
    }
    *ret = all;
    return NULL;
}
