#include "server/options/options.h"

#include "base/check.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "os/files/beside.h"
#include "os/files/file.h"
#include "server/options/options_row.h"

#include <string.h>

/* Plug-ins are searched next to the installed library. If nothing is there, the defaults of the
 * options stay. */
static void find_own_folders(struct options *o)
{
    const struct {
        const char **field;
        const char *folder;
    } places[] = {
        {&o->backend_directory, "backends"},
        {&o->repoagent_directory, "repoagents"},
        {&o->cache_directory, "caches"},
    };
    char *prefix = beside_prefix();
    for (size_t i = 0; prefix && i < sizeof(places) / sizeof(*places); i++) {
        struct strbuf path = STRBUF_INIT;
        strbuf_printf(&path, "%s/%s", prefix, places[i].folder);
        if (file_is_dir(strbuf_str(&path)))
            *places[i].field = options_value_keep(o, path.data, path.len);
        strbuf_fini(&path);
    }
    mem_free(prefix);
}

void options_defaults(struct options *o)
{
    size_t count;
    const struct options_row *rows = options_row_all(&count);
    memset(o, 0, sizeof(*o));
    for (size_t i = 0; i < count; i++) {
        if (rows[i].kind <= OPTIONS_KIND_TUNES || !*rows[i].standard)
            continue;
        struct err *e = options_value_set(&rows[i], rows[i].standard, o);
        CHECK(!e);
    }
    o->auto_complete_config = true;
    find_own_folders(o);
}

void options_fini(struct options *o)
{
    options_value_forget(o);
}

static struct err *unknown(const char *arg, const char *name, size_t len)
{
    const struct options_row *other;
    options_row_abbreviated(name, len, &other);
    if (other)
        return err_new(STATUS_INVALID_ARG,
                       "unknown option '%s': more than one option begins so, e.g. --%s", arg,
                       other->name);
    const char *nearest = options_row_nearest(name, len);
    return err_new(STATUS_INVALID_ARG, "unknown option '%s'%s%s%s, see --help", arg,
                   nearest ? ", did you mean --" : "", nearest ? nearest : "", nearest ? "?" : "");
}

/* Reads the option at argv[*at] and its value, which may be the next argument. */
static struct err *read_one(int argc, char *const *argv, int *at, const struct options_row **ret,
                            const char **ret_value)
{
    const char *arg = argv[*at];
    if (strncmp(arg, "--", 2) != 0)
        return err_new(STATUS_INVALID_ARG,
                       "unexpected argument '%s': options begin with '--', see --help", arg);
    const char *name = arg + 2;
    const char *equals = strchr(name, '=');
    size_t len = equals ? (size_t)(equals - name) : strlen(name);
    const struct options_row *other;
    const struct options_row *row = options_row_find(name, len);
    if (!row)
        row = options_row_abbreviated(name, len, &other);
    if (!row)
        return unknown(arg, name, len);
    *ret = row;
    *ret_value = equals ? equals + 1 : NULL;
    if (row->kind == OPTIONS_KIND_FLAG && equals)
        return err_new(STATUS_INVALID_ARG, "option --%s: takes no value, found '%s'", row->name,
                       *ret_value);
    if (row->kind == OPTIONS_KIND_FLAG || equals)
        return NULL;
    if (++*at == argc)
        return err_new(STATUS_INVALID_ARG, "option --%s needs a value: %s", row->name, row->value);
    *ret_value = argv[*at];
    return NULL;
}

static enum options_action action_of(const char *arg)
{
    if (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0)
        return OPTIONS_HELP;
    return strcmp(arg, "--version") == 0 ? OPTIONS_VERSION : OPTIONS_RUN;
}

/* Repositories on the command line replace those of the file. */
static void before_set(const struct options_row *row, struct options *o)
{
    if (row->kind != OPTIONS_KIND_REPOSITORY)
        return;
    o->repository_count -= o->repositories_of_file;
    o->repositories_of_file = 0;
}

/* One pass over the command line. files: read only --config; else everything else. */
static struct err *pass(int argc, char *const *argv, struct options *o, bool files,
                        enum options_action *ret)
{
    for (int i = 1; i < argc; i++) {
        *ret = action_of(argv[i]);
        if (*ret != OPTIONS_RUN)
            return NULL;
        const struct options_row *row;
        const char *value;
        struct err *e = read_one(argc, argv, &i, &row, &value);
        bool is_file = !e && strcmp(row->name, "config") == 0;
        if (!e && !is_file && !files)
            before_set(row, o);
        if (!e && is_file == files) {
            e = options_value_set(row, value, o);
            options_row_warn(row, o);
        }
        if (e)
            return e;
    }
    return NULL;
}

/* What was given and does nothing, because another option is missing. */
static void warn_of_useless(struct options *o)
{
    struct options defaults;
    options_defaults(&defaults);
    static const char without[] = "option --%s: does nothing without --%s";
    if (o->client_shm_bytes && !o->allow_client_shm)
        options_value_warn(o, without, "client-shm-byte-size", "allow-client-shm=true");
    if (o->openai.port != defaults.openai.port && !o->openai.allow)
        options_value_warn(o, without, "openai-port", "allow-openai=true");
    if (o->sagemaker.port != defaults.sagemaker.port && !o->sagemaker.allow)
        options_value_warn(o, without, "sagemaker-port", "allow-sagemaker=true");
    if (o->trace.setting_count && !o->trace.opentelemetry)
        options_value_warn(o, without, "trace-config=opentelemetry,...",
                           "trace-config=mode=opentelemetry");
    if (o->trace.level && !o->trace.off && !o->trace.file && !o->trace.opentelemetry)
        options_value_warn(o, without, "trace-config=level=...", "trace-config=triton,file=FILE");
    options_fini(&defaults);
}

static void settle_completion(struct options *o)
{
    o->auto_complete_config = !o->disable_auto_complete && !o->strict_model_config;
}

/* Tries the option at argv[*at]. An unknown one may have a value that stands alone. */
static void try_one(int argc, char *const *argv, int *at, struct options *o, options_tried_fn tried,
                    void *arg)
{
    const struct options_row *row = NULL;
    const char *value = NULL, *given = argv[*at];
    size_t warnings = o->warning_count;
    struct err *e = read_one(argc, argv, at, &row, &value);
    if (e && !row && strncmp(given, "--", 2) == 0 && !strchr(given, '=') && *at + 1 < argc &&
        argv[*at + 1][0] != '-')
        value = argv[++*at];
    enum options_fate refused = e ? OPTIONS_REFUSED : OPTIONS_VALUE_REFUSED;
    if (!e)
        e = options_value_set(row, value, o);
    if (!e)
        options_row_warn(row, o);
    enum options_fate fate = e                                 ? refused
                             : row->kind == OPTIONS_KIND_TUNES ? OPTIONS_IGNORED
                                                               : OPTIONS_TAKEN;
    const char *warning = o->warning_count > warnings ? o->warnings[o->warning_count - 1] : NULL;
    /* a given text with '=' shows the value already */
    tried(arg, fate, given, strchr(given, '=') ? NULL : value, e ? err_message(e) : warning);
    err_free(e);
}

void options_try(int argc, char *const *argv, struct options *o, options_tried_fn tried, void *arg)
{
    for (int i = 0; i < argc; i++)
        try_one(argc, argv, &i, o, tried, arg);
    settle_completion(o);
}

struct err *options_parse(int argc, char *const *argv, struct options *o, enum options_action *ret)
{
    *ret = OPTIONS_RUN;
    struct err *e = options_clouds_environment(o);
    if (!e)
        e = pass(argc, argv, o, true, ret);
    if (e || *ret != OPTIONS_RUN)
        return e;
    if (o->config_file)
        e = options_file_read(o->config_file, o);
    if (!e)
        e = pass(argc, argv, o, false, ret);
    if (!e && o->load_model_count && o->control_mode != OPTIONS_CONTROL_EXPLICIT)
        e = err_new(STATUS_INVALID_ARG,
                    "option --load-model needs --model-control-mode=explicit as well");
    if (!e && *ret == OPTIONS_RUN)
        e = options_clouds_settle(o);
    if (!e)
        warn_of_useless(o);
    settle_completion(o);
    return e;
}
