#include "server/options.h"

#include "base/mem.h"
#include "base/strbuf.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum kind {
    KIND_FLAG,
    KIND_BOOL,
    KIND_NOT_BOOL,
    KIND_U16,
    KIND_U32,
    KIND_U64,
    KIND_STRING,
    KIND_REPOSITORY,
    KIND_BACKEND_CONFIG,
    KIND_LOG_FORMAT,
};

struct row {
    const char *group;
    const char *name;
    enum kind kind;
    size_t offset; /* of the field in struct options */
    const char *value;
    const char *help;
};

static const struct row rows[] = {
#define OPTION(group_, name_, kind_, field, value_, help_) \
    {.group = (group_),                                    \
     .name = (name_),                                      \
     .kind = KIND_##kind_,                                 \
     .offset = offsetof(struct options, field),            \
     .value = (value_),                                    \
     .help = (help_)},
#include "server/options.def"
#undef OPTION
};

#define ROW_COUNT (sizeof(rows) / sizeof(rows[0]))

void options_defaults(struct options *o)
{
    *o = (struct options){
        .server_id = "triton",
        .exit_on_error = true,
        .strict_readiness = true,
        .auto_complete_config = true,
        .exit_timeout_secs = 30,
        .model_load_threads = 4,
        .backend_directory = "/opt/tritonserver/backends",
        .allow_http = true,
        .http_address = "0.0.0.0",
        .http_port = 8000,
        .http_max_input_bytes = (uint64_t)64 << 20,
        .allow_grpc = true,
        .grpc_address = "0.0.0.0",
        .grpc_port = 8001,
        .allow_metrics = true,
        .metrics_port = 8002,
        .inline_execution = true,
        .log_info = true,
        .log_warning = true,
        .log_error = true,
    };
}

static struct err *bad_value(const struct row *row, const char *value, const char *allowed)
{
    return err_new(STATUS_INVALID_ARG, "option --%s: expected %s, found '%s'", row->name, allowed,
                   value);
}

static struct err *parse_bool(const struct row *row, const char *value, bool *ret)
{
    static const char *const yes[] = {"true", "1", "yes", "on"};
    static const char *const no[] = {"false", "0", "no", "off"};
    for (size_t i = 0; i < 4; i++) {
        if (strcasecmp(value, yes[i]) == 0 || strcasecmp(value, no[i]) == 0) {
            *ret = strcasecmp(value, yes[i]) == 0;
            return NULL;
        }
    }
    return bad_value(row, value, "true or false");
}

static struct err *parse_number(const struct row *row, const char *value, uint64_t max,
                                uint64_t *ret)
{
    char *end;
    errno = 0;
    unsigned long long n = strtoull(value, &end, 10);
    if (*value >= '0' && *value <= '9' && !*end && !errno && n <= max) {
        *ret = n;
        return NULL;
    }
    struct err *e = err_new(STATUS_INVALID_ARG,
                            "option --%s: expected a number from 0 to %" PRIu64 ", found '%s'",
                            row->name, max, value);
    return e;
}

static struct err *add_repository(const struct row *row, const char *value, struct options *o)
{
    if (o->repository_count == OPTIONS_MAX_REPOSITORIES)
        return err_new(STATUS_INVALID_ARG, "option --%s: at most %d repositories can be given",
                       row->name, OPTIONS_MAX_REPOSITORIES);
    if (!*value)
        return bad_value(row, value, "a path");
    o->repositories[o->repository_count++] = value;
    return NULL;
}

/* <backend>,<key>=<value>, or <key>=<value> for every backend. The copies live as long as the process. */
static struct err *add_backend_setting(const struct row *row, const char *value, struct options *o)
{
    const char *equals = strchr(value, '=');
    const char *comma = strchr(value, ',');
    if (comma && equals && comma > equals)
        comma = NULL;
    const char *key = comma ? comma + 1 : value;
    if (!equals || equals == key)
        return bad_value(row, value, "<backend>,<key>=<value> or <key>=<value>");
    if (o->backend_setting_count == OPTIONS_MAX_BACKEND_CONFIG)
        return err_new(STATUS_INVALID_ARG, "option --%s: at most %d settings can be given",
                       row->name, OPTIONS_MAX_BACKEND_CONFIG);
    o->backend_settings[o->backend_setting_count++] = (struct options_backend_setting){
        .backend = comma ? mem_strndup(value, (size_t)(comma - value)) : "",
        .key = mem_strndup(key, (size_t)(equals - key)),
        .value = equals + 1,
    };
    return NULL;
}

static struct err *set_number(const struct row *row, const char *value, void *field)
{
    uint64_t n;
    uint64_t max = row->kind == KIND_U16   ? UINT16_MAX
                   : row->kind == KIND_U32 ? UINT32_MAX
                                           : UINT64_MAX;
    struct err *e = parse_number(row, value, max, &n);
    if (e)
        return e;
    if (row->kind == KIND_U16)
        *(uint16_t *)field = (uint16_t)n;
    else if (row->kind == KIND_U32)
        *(uint32_t *)field = (uint32_t)n;
    else
        *(uint64_t *)field = n;
    return NULL;
}

static struct err *set(const struct row *row, const char *value, struct options *o)
{
    void *field = (char *)o + row->offset;
    bool yes;
    struct err *e;
    switch (row->kind) {
    case KIND_FLAG:
        *(bool *)field = false;
        return NULL;
    case KIND_BOOL:
        return parse_bool(row, value, field);
    case KIND_NOT_BOOL:
        e = parse_bool(row, value, &yes);
        if (!e)
            *(bool *)field = !yes;
        return e;
    case KIND_U16:
    case KIND_U32:
    case KIND_U64:
        return set_number(row, value, field);
    case KIND_STRING:
        *(const char **)field = value;
        return NULL;
    case KIND_REPOSITORY:
        return add_repository(row, value, o);
    case KIND_BACKEND_CONFIG:
        return add_backend_setting(row, value, o);
    case KIND_LOG_FORMAT:
        *(bool *)field = strcmp(value, "ISO8601") == 0;
        return *(bool *)field || strcmp(value, "default") == 0
                   ? NULL
                   : bad_value(row, value, "default or ISO8601");
    }
    return NULL;
}

static const struct row *find_row(const char *name, size_t len)
{
    for (size_t i = 0; i < ROW_COUNT; i++)
        if (strlen(rows[i].name) == len && memcmp(rows[i].name, name, len) == 0)
            return &rows[i];
    return NULL;
}

struct err *options_parse(int argc, char *const *argv, struct options *o, enum options_action *ret)
{
    *ret = OPTIONS_RUN;
    for (int i = 1; i < argc; i++) {
        const char *arg = argv[i];
        if (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0) {
            *ret = OPTIONS_HELP;
            return NULL;
        }
        if (strncmp(arg, "--", 2) != 0)
            return err_new(STATUS_INVALID_ARG,
                           "unexpected argument '%s': options begin with '--', see --help", arg);
        const char *name = arg + 2;
        const char *equals = strchr(name, '=');
        const struct row *row = find_row(name, equals ? (size_t)(equals - name) : strlen(name));
        if (!row)
            return err_new(STATUS_INVALID_ARG, "unknown option '%s', see --help", arg);
        const char *value = equals ? equals + 1 : NULL;
        if (row->kind != KIND_FLAG && !value) {
            if (++i == argc)
                return err_new(STATUS_INVALID_ARG, "option --%s needs a value: %s", row->name,
                               row->value);
            value = argv[i];
        }
        struct err *e = set(row, value, o);
        if (e)
            return e;
    }
    return NULL;
}

char *options_help(void)
{
    struct strbuf sb = STRBUF_INIT;
    strbuf_puts(&sb, "usage: nereid [options]\n\nServes models over HTTP and gRPC.\n");
    const char *group = "";
    for (size_t i = 0; i < ROW_COUNT; i++) {
        if (strcmp(group, rows[i].group) != 0)
            strbuf_printf(&sb, "\n%s:\n", rows[i].group);
        group = rows[i].group;
        strbuf_printf(&sb, "  --%s%s%s\n        %s\n", rows[i].name, *rows[i].value ? " " : "",
                      rows[i].value, rows[i].help);
    }
    return strbuf_take(&sb);
}
