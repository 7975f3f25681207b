#include "repo/load/load_labels.h"

#include "base/mem.h"
#include "model/config.h"
#include "model/labels.h"
#include "os/files/beneath.h"
#include "os/files/file.h"
#include "serve/version.h"

static struct err *load_output_labels(const struct model_io *io, const char *model_dir,
                                      struct labels **ret)
{
    char *path = file_join(model_dir, io->label_filename);
    char *text = NULL;
    size_t len;
    struct err *e = beneath_read(model_dir, io->label_filename, LABELS_MAX_BYTES, &text, &len);
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
        struct err *e = load_output_labels(&config->outputs[i], model_dir, &all[i]);
        if (e) {
            version_free_labels(all, config->output_count);
            return e;
        }
    }
    *ret = all;
    return NULL;
}
