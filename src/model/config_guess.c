#include "model/config_guess.h"

#include "base/strbuf.h"
#include "codec/pb_field.h"
#include "model/config_platform.h"
#include "proto/model_config.pb-c.h"

#include <string.h>

/* has_definition - true if the version's directory contains the row's default definition in the
 * right form. */
static bool has_definition(const struct config_platform *row, const char *const *entries,
                           size_t count)
{
    size_t len = strlen(row->filename);
    for (size_t i = 0; i < count; i++) {
        if (strncmp(entries[i], row->filename, len) != 0)
            continue;
        if ((row->form != 'd' && strcmp(entries[i] + len, "") == 0) ||
            (row->form != 'f' && strcmp(entries[i] + len, "/") == 0))
            return true;
    }
    return false;
}

static void adopt(Inference__ModelConfig *proto, const struct config_platform *row)
{
    if (!*proto->platform && *row->name)
        pb_field_set_string(&proto->platform, row->name);
    if (!*proto->backend)
        pb_field_set_string(&proto->backend, row->backend);
    if (!*proto->default_model_filename)
        pb_field_set_string(&proto->default_model_filename, row->filename);
}

/* True if it names no platform, and either no backend or one with several platforms. */
bool config_guess_wanted(const Inference__ModelConfig *proto)
{
    bool is_open =
        !*proto->platform && (!*proto->backend || strcmp(proto->backend, "tensorflow") == 0);
    return is_open && proto->scheduling_choice_case !=
                          INFERENCE__MODEL_CONFIG__SCHEDULING_CHOICE_ENSEMBLE_SCHEDULING;
}

/* from_model_name - "x.identity" means the backend identity and the definition model.identity. */
static struct err *from_model_name(Inference__ModelConfig *proto, const char *model_name)
{
    const char *dot = strchr(model_name, '.');
    if (!dot || !dot[1])
        return err_new(STATUS_INVALID_ARG,
                       "Invalid model name: Could not determine backend for model '%s' with no "
                       "backend in model configuration. "
                       "Expected model name of the form 'model.<backend_name>'.",
                       model_name);
    struct strbuf filename = STRBUF_INIT;
    strbuf_printf(&filename, "model%s", dot);
    pb_field_set_string(&proto->backend, dot + 1);
    pb_field_set_string(&proto->default_model_filename, strbuf_str(&filename));
    strbuf_fini(&filename);
    return NULL;
}

struct err *config_guess_backend(Inference__ModelConfig *proto, const char *model_name,
                                 const char *const *entries, size_t count)
{
    if (!config_guess_wanted(proto))
        return NULL;
    const char *filename = proto->default_model_filename;
    const struct config_platform *row;
    for (size_t i = 0; (row = config_platform_at(i)); i++) {
        if (!row->guessed || (*proto->backend && strcmp(proto->backend, row->backend) != 0))
            continue;
        if (*filename ? strcmp(filename, row->filename) == 0
                      : has_definition(row, entries, count)) {
            adopt(proto, row);
            return NULL;
        }
    }
    return *proto->backend || *filename ? NULL : from_model_name(proto, model_name);
}
