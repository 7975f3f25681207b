#include "server/options/options_row.h"

#include "base/mem.h"
#include "os/sock_unix.h"
#include "server/options/options_cache.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define WARNING_BYTES 512 /* longer warnings are cut */

struct options_string {
    struct options_string *next;
    char text[];
};

const char *options_value_keep(struct options *o, const char *s, size_t len)
{
    struct options_string *copy = mem_alloc(sizeof(*copy) + len + 1);
    copy->next = o->strings;
    o->strings = copy;
    memcpy(copy->text, s, len);
    copy->text[len] = '\0';
    return copy->text;
}

void options_value_forget(struct options *o)
{
    while (o->strings) {
        struct options_string *next = o->strings->next;
        mem_free(o->strings);
        o->strings = next;
    }
}

void options_value_warn(struct options *o, const char *fmt, ...)
{
    char text[WARNING_BYTES];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    for (size_t i = 0; i < o->warning_count; i++)
        if (strcmp(o->warnings[i], text) == 0)
            return;
    if (o->warning_count < OPTIONS_MAX_WARNINGS)
        o->warnings[o->warning_count++] = options_value_keep(o, text, strlen(text));
}

struct err *options_value_bad(const struct options_row *row, const char *value, const char *allowed)
{
    return err_new(STATUS_INVALID_ARG, "option --%s: expected %s, found '%s'", row->name, allowed,
                   value);
}

bool options_value_bool(const char *value, bool *ret)
{
    static const char *const yes[] = {"true", "1", "yes", "on"};
    static const char *const no[] = {"false", "0", "no", "off"};
    for (size_t i = 0; i < 4; i++) {
        if (strcasecmp(value, yes[i]) == 0 || strcasecmp(value, no[i]) == 0) {
            *ret = strcasecmp(value, yes[i]) == 0;
            return true;
        }
    }
    return false;
}

static struct err *parse_bool(const struct options_row *row, const char *value, bool *ret)
{
    return options_value_bool(value, ret) ? NULL : options_value_bad(row, value, "true or false");
}

static bool parse_digits(const char *text, uint64_t max, uint64_t *ret)
{
    char *end;
    errno = 0;
    unsigned long long n = strtoull(text, &end, 10);
    bool ok = *text >= '0' && *text <= '9' && !*end && !errno && n <= max;
    if (ok)
        *ret = n;
    return ok;
}

#define DAY_SECONDS 86400

static struct err *options_value_set_number(const struct options_row *row, const char *value,
                                            void *field)
{
    uint64_t n = 0;
    uint64_t min = row->kind == OPTIONS_KIND_SIZE || row->kind == OPTIONS_KIND_SECONDS;
    uint64_t max = row->kind == OPTIONS_KIND_U16       ? UINT16_MAX
                   : row->kind == OPTIONS_KIND_U32     ? UINT32_MAX
                   : row->kind == OPTIONS_KIND_SECONDS ? DAY_SECONDS
                   : row->kind == OPTIONS_KIND_THREADS ? OPTIONS_MAX_LOOP_THREADS
                                                       : UINT64_MAX;
    if (!parse_digits(value, max, &n) || n < min)
        return err_new(STATUS_INVALID_ARG,
                       "option --%s: expected a number from %" PRIu64 " to %" PRIu64 ", found '%s'",
                       row->name, min, max, value);
    if (row->kind == OPTIONS_KIND_U16)
        *(uint16_t *)field = (uint16_t)n;
    else if (max <= UINT32_MAX)
        *(uint32_t *)field = (uint32_t)n;
    else
        *(uint64_t *)field = n;
    return NULL;
}

static struct err *set_level(const struct options_row *row, const char *value, uint32_t *field)
{
    uint64_t n = 0;
    bool yes;
    if (parse_digits(value, UINT32_MAX, &n))
        *field = (uint32_t)n;
    else if (options_value_bool(value, &yes))
        *field = yes;
    else
        return options_value_bad(row, value, "a level from 0 on, true or false");
    return NULL;
}

/* Adds a repository. If a directory is given twice, it is one repository. */
static struct err *add_repository(const struct options_row *row, const char *value,
                                  struct options *o)
{
    if (!*value)
        return options_value_bad(row, value, "a path");
    for (size_t i = 0; i < o->repository_count; i++)
        if (strcmp(o->repositories[i], value) == 0)
            return NULL;
    if (o->repository_count == OPTIONS_MAX_REPOSITORIES)
        return err_new(STATUS_INVALID_ARG, "option --%s: at most %d repositories can be given",
                       row->name, OPTIONS_MAX_REPOSITORIES);
    o->repositories[o->repository_count++] = value;
    return NULL;
}

/* Sets <backend>,<key>=<value>, or <key>=<value> for every backend. A later setting of a key
 * replaces an earlier one. */
static struct err *add_backend_setting(const struct options_row *row, const char *value,
                                       struct options *o)
{
    const char *equals = strchr(value, '=');
    const char *comma = strchr(value, ',');
    if (comma && equals && comma > equals)
        comma = NULL;
    const char *key = comma ? comma + 1 : value;
    if (!equals || equals == key)
        return options_value_bad(row, value, "<backend>,<key>=<value> or <key>=<value>");
    struct options_backend_setting s = {
        .backend = comma ? options_value_keep(o, value, (size_t)(comma - value)) : "",
        .key = options_value_keep(o, key, (size_t)(equals - key)),
        .value = equals + 1,
    };
    for (size_t i = 0; i < o->backend_setting_count; i++) {
        struct options_backend_setting *there = &o->backend_settings[i];
        if (strcmp(there->backend, s.backend) == 0 && strcmp(there->key, s.key) == 0) {
            *there = s;
            return NULL;
        }
    }
    if (o->backend_setting_count == OPTIONS_MAX_BACKEND_CONFIG)
        return err_new(STATUS_INVALID_ARG, "option --%s: at most %d settings can be given",
                       row->name, OPTIONS_MAX_BACKEND_CONFIG);
    o->backend_settings[o->backend_setting_count++] = s;
    return NULL;
}

static struct err *add_component(const struct options_row *row, const char *value,
                                 struct options *o)
{
    const char *equals = strchr(value, '=');
    size_t len = equals ? (size_t)(equals - value) : 0;
    uint64_t level = 0;
    if (!equals || !parse_digits(equals + 1, UINT32_MAX, &level))
        return options_value_bad(row, value, "<component>=<level>");
    if (!log_component_known(value, len))
        return options_value_bad(row, value, "one of the components " LOG_COMPONENTS);
    struct options_component *c = NULL;
    for (size_t i = 0; i < o->log_component_count; i++)
        if (strlen(o->log_components[i].name) == len &&
            memcmp(o->log_components[i].name, value, len) == 0)
            c = &o->log_components[i];
    if (!c && o->log_component_count == OPTIONS_MAX_COMPONENTS)
        return err_new(STATUS_INVALID_ARG, "option --%s: at most %d components can be given",
                       row->name, OPTIONS_MAX_COMPONENTS);
    if (!c)
        c = &o->log_components[o->log_component_count++];
    *c = (struct options_component){.name = options_value_keep(o, value, len),
                                    .verbose = (uint32_t)level};
    return NULL;
}

static struct err *set_format(const struct options_row *row, const char *value,
                              enum log_format *field)
{
    if (strcasecmp(value, "default") == 0)
        *field = LOG_FORMAT_DEFAULT;
    else if (strcasecmp(value, "ISO8601") == 0)
        *field = LOG_FORMAT_ISO8601;
    else if (strcasecmp(value, "json") == 0)
        *field = LOG_FORMAT_JSON;
    else
        return options_value_bad(row, value, "default, ISO8601 or json");
    return NULL;
}

/* An address of IPv6 may stand in brackets, as it has to where the reference puts a port behind
 * it. */
static struct err *set_address(const struct options_row *row, const char *value, struct options *o,
                               const char **field)
{
    size_t len = strlen(value);
    const char *path = sock_unix_path(value);
    if (path && !sock_unix_path_ok(path))
        return err_new(STATUS_INVALID_ARG,
                       "option --%s: expected an address, or unix: and a path of 1 to %d bytes, "
                       "found '%s'",
                       row->name, SOCK_UNIX_PATH_BYTES, value);
    bool brackets = len > 2 && *value == '[' && value[len - 1] == ']';
    *field = brackets ? options_value_keep(o, value + 1, len - 2) : value;
    return NULL;
}

static struct err *set_control_mode(const struct options_row *row, const char *value,
                                    enum options_control_mode *field)
{
    if (strcasecmp(value, "none") == 0)
        *field = OPTIONS_CONTROL_NONE;
    else if (strcasecmp(value, "poll") == 0)
        *field = OPTIONS_CONTROL_POLL;
    else if (strcasecmp(value, "explicit") == 0)
        *field = OPTIONS_CONTROL_EXPLICIT;
    else
        return options_value_bad(row, value, "none, poll or explicit");
    return NULL;
}

static struct err *add_load_model(const struct options_row *row, const char *value,
                                  struct options *o)
{
    if (!*value)
        return options_value_bad(row, value, "the name of a model");
    for (size_t i = 0; i < o->load_model_count; i++)
        if (strcmp(o->load_models[i], value) == 0)
            return NULL;
    if (o->load_model_count == OPTIONS_MAX_LOAD_MODELS)
        return err_new(STATUS_INVALID_ARG, "option --%s: at most %d models can be given", row->name,
                       OPTIONS_MAX_LOAD_MODELS);
    o->load_models[o->load_model_count++] = value;
    return NULL;
}

static struct err *set_filename(const struct options_row *row, const char *value,
                                const char **field)
{
    if (!*value || *value == '.' || strpbrk(value, "/ \t"))
        return options_value_bad(row, value,
                                 "a name without '/' or spaces that does not begin with '.'");
    *field = value;
    return NULL;
}

static bool take_piece(char form, const char **at)
{
    char *end = NULL;
    errno = 0;
    if (form == 'i')
        strtoll(*at, &end, 10);
    else if (form == 'n')
        strtod(*at, &end);
    else
        end = (char *)(uintptr_t)*at + (**at == form);
    bool ok = end != *at && !errno;
    *at = end;
    return ok;
}

/* Checks the value of an option that has no effect, so that typing errors are noticed. */
static struct err *check_form(const struct options_row *row, const char *value)
{
    const char *at = value;
    bool yes;
    bool ok = true;
    if (*row->standard == 's')
        return NULL;
    if (*row->standard == 'b')
        return parse_bool(row, value, &yes);
    for (const char *form = row->standard; *form && ok; form++)
        ok = take_piece(*form, &at);
    return ok && !*at ? NULL : options_value_bad(row, value, row->value);
}

/* The options that a part of the server reads by itself. */
static struct err *set_for_parts(const struct options_row *row, const char *value,
                                 struct options *o, void *field)
{
    switch ((int)row->kind) {
    case OPTIONS_KIND_CACHE_CONFIG:
    case OPTIONS_KIND_CACHE_JSON:
    case OPTIONS_KIND_CACHE_SIZE:
        return options_cache_add(row, value, o);
    case OPTIONS_KIND_RESTRICTION:
        return options_front_restrict(row, value, o, field);
    case OPTIONS_KIND_COMPRESSION:
        return options_front_compression(row, value, field);
    case OPTIONS_KIND_LATENCIES:
        return options_front_latencies(row, value, o, field);
    case OPTIONS_KIND_PORT_RANGE:
        return options_clouds_range(row, value, field);
    case OPTIONS_KIND_RATE_LIMIT:
    case OPTIONS_KIND_RATE_RESOURCE:
    case OPTIONS_KIND_HOST_POLICY:
        return options_limits_set(row, value, o);
    case OPTIONS_KIND_GPU_POOL:
    case OPTIONS_KIND_GPU_LIMIT:
    case OPTIONS_KIND_CAPABILITY:
        return options_gpus_set(row, value, o);
    default: /* those of traces */
        return options_trace_set(row, value, o);
    }
}

struct err *options_value_set(const struct options_row *row, const char *value, struct options *o)
{
    void *field = (char *)o + row->offset;
    switch ((int)row->kind) {
    case OPTIONS_KIND_TUNES:
        return check_form(row, value);
    case OPTIONS_KIND_FLAG:
        *(bool *)field = true;
        return value ? parse_bool(row, value, field) : NULL;
    case OPTIONS_KIND_BOOL:
        return parse_bool(row, value, field);
    case OPTIONS_KIND_U16:
    case OPTIONS_KIND_U32:
    case OPTIONS_KIND_U64:
    case OPTIONS_KIND_SIZE:
    case OPTIONS_KIND_SECONDS:
    case OPTIONS_KIND_THREADS:
        return options_value_set_number(row, value, field);
    case OPTIONS_KIND_LEVEL:
        return set_level(row, value, field);
    case OPTIONS_KIND_FILE:
        if (!*value)
            return options_value_bad(row, value, "a path");
        __attribute__((fallthrough));
    case OPTIONS_KIND_STRING:
        *(const char **)field = value;
        return NULL;
    case OPTIONS_KIND_ADDRESS:
        return set_address(row, value, o, field);
    case OPTIONS_KIND_LOG_FORMAT:
        return set_format(row, value, field);
    case OPTIONS_KIND_REPOSITORY:
        return add_repository(row, value, o);
    case OPTIONS_KIND_BACKEND_CONFIG:
        return add_backend_setting(row, value, o);
    case OPTIONS_KIND_LOG_COMPONENT:
        return add_component(row, value, o);
    case OPTIONS_KIND_CONTROL_MODE:
        return set_control_mode(row, value, field);
    case OPTIONS_KIND_LOAD_MODEL:
        return add_load_model(row, value, o);
    case OPTIONS_KIND_CORS_ORIGIN:
        return options_front_origin(row, value, o);
    case OPTIONS_KIND_FILENAME:
        return set_filename(row, value, field);
    default:
        return set_for_parts(row, value, o, field);
    }
}
