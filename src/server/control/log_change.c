#include "server/control/log_change.h"

#include "base/strbuf.h"

#include <string.h>

/* Indexed by enum log_format. */
static const char *const formats[] = {"default", "ISO8601", "json"};
#define FORMATS (sizeof(formats) / sizeof(*formats))

void log_change_verbose(struct log_change *c, uint64_t level)
{
    int32_t cut = (int32_t)(uint32_t)level;
    c->what |= LOG_UPDATE_VERBOSE;
    c->to.verbose = cut > 0 ? (uint32_t)cut : 0;
}

bool log_change_format(struct log_change *c, const char *name, size_t len)
{
    for (size_t i = 0; i < FORMATS; i++) {
        if (strlen(formats[i]) == len && memcmp(formats[i], name, len) == 0) {
            c->what |= LOG_UPDATE_FORMAT;
            c->to.format = (enum log_format)i;
            return true;
        }
    }
    return false;
}

struct err *log_change_components(struct log_change *c, const char *text, size_t len)
{
    c->with_levels = true;
    return err_wrap(log_levels_parse(text, len, &c->levels), "log_component");
}

struct err *log_change_no_file(void)
{
    return err_new(STATUS_UNSUPPORTED,
                   "log file location can not be updated through network protocol");
}

void log_change_apply(const struct log_change *c)
{
    log_update(&c->to, c->what, c->with_levels ? &c->levels : NULL);
}

struct log_told log_change_told(const char *file)
{
    struct log_told told = {.file = file ? file : "", .settings = log_get()};
    told.format = formats[told.settings.format];
    struct log_levels levels = log_levels_get();
    struct strbuf sb = STRBUF_INIT;
    log_levels_put(&levels, &sb);
    if (sb.len)
        told.components = strbuf_take(&sb);
    strbuf_fini(&sb);
    return told;
}
