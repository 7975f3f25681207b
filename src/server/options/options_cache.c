#include "server/options/options_cache.h"

#include "base/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

/* True if the deprecated option is mixed with the others. */
static bool is_mixed(const struct options *o, bool deprecated)
{
    for (size_t i = 0; i < o->cache_setting_count; i++)
        if (o->cache_settings[i].deprecated != deprecated)
            return true;
    return false;
}

static bool is_same(const struct options_cache_setting *a, const struct options_cache_setting *b)
{
    return strcmp(a->cache, b->cache) == 0 && strcmp(a->key, b->key) == 0;
}

static struct err *options_cache_put(const struct options_row *row,
                                     const struct options_cache_setting *s, struct options *o)
{
    if (is_mixed(o, s->deprecated))
        return err_new(STATUS_INVALID_ARG,
                       "option --%s: --response-cache-byte-size and --cache-config exclude each "
                       "other",
                       row->name);
    for (size_t i = 0; i < o->cache_setting_count; i++)
        if (is_same(&o->cache_settings[i], s)) {
            o->cache_settings[i] = *s;
            return NULL;
        }
    if (o->cache_setting_count == OPTIONS_MAX_CACHE_SETTINGS)
        return err_new(STATUS_INVALID_ARG, "option --%s: at most %d settings can be given",
                       row->name, OPTIONS_MAX_CACHE_SETTINGS);
    o->cache_settings[o->cache_setting_count++] = *s;
    return NULL;
}

/* <cache>,<key>=<value> */
static struct err *add_setting(const struct options_row *row, const char *value, struct options *o)
{
    const char *comma = strchr(value, ',');
    const char *equals = comma ? strchr(comma, '=') : NULL;
    if (!equals || comma == value || equals == comma + 1 || !equals[1])
        return options_value_bad(row, value, row->value);
    struct options_cache_setting s = {
        .cache = options_value_keep(o, value, (size_t)(comma - value)),
        .key = options_value_keep(o, comma + 1, (size_t)(equals - comma - 1)),
        .value = equals + 1,
    };
    return options_cache_put(row, &s, o);
}

/* <cache>,<JSON object> */
static struct err *options_cache_add_json(const struct options_row *row, const char *value,
                                          struct options *o)
{
    const char *comma = strchr(value, ',');
    yyjson_doc *doc = comma ? yyjson_read(comma + 1, strlen(comma + 1), 0) : NULL;
    bool object = yyjson_is_obj(yyjson_doc_get_root(doc));
    yyjson_doc_free(doc);
    if (!object || comma == value)
        return options_value_bad(row, value, row->value);
    struct options_cache_setting s = {
        .cache = options_value_keep(o, value, (size_t)(comma - value)),
        .key = "",
        .value = comma + 1,
    };
    return options_cache_put(row, &s, o);
}

/* A size of 0 means that the option is not set. */
static struct err *add_size(const struct options_row *row, const char *value, struct options *o)
{
    char *end;
    errno = 0;
    unsigned long long n = strtoull(value, &end, 10);
    if (*value < '0' || *value > '9' || *end || errno)
        return options_value_bad(row, value, row->value);
    if (!n)
        return NULL;
    struct options_cache_setting s = {
        .cache = "local", .key = "size", .value = value, .deprecated = true};
    return options_cache_put(row, &s, o);
}

struct err *options_cache_add(const struct options_row *row, const char *value, struct options *o)
{
    if (row->kind == OPTIONS_KIND_CACHE_CONFIG)
        return add_setting(row, value, o);
    return row->kind == OPTIONS_KIND_CACHE_JSON ? options_cache_add_json(row, value, o)
                                                : add_size(row, value, o);
}

/* The JSON object that was given, or an empty one. */
static yyjson_mut_doc *options_cache_begin(const struct options *o)
{
    yyjson_mut_doc *doc = NULL;
    for (size_t i = 0; i < o->cache_setting_count; i++) {
        const struct options_cache_setting *s = &o->cache_settings[i];
        if (*s->key)
            continue;
        yyjson_doc *whole = yyjson_read(s->value, strlen(s->value), 0);
        CHECK(whole); /* it was parsed before */
        doc = yyjson_doc_mut_copy(whole, NULL);
        yyjson_doc_free(whole);
    }
    if (!doc) {
        doc = yyjson_mut_doc_new(NULL);
        CHECK(doc);
        yyjson_mut_doc_set_root(doc, yyjson_mut_obj(doc));
    }
    return doc;
}

struct err *options_cache_config(const struct options *o, const char **ret_name, char **ret_config)
{
    *ret_name = NULL;
    *ret_config = NULL;
    if (!o->cache_setting_count)
        return NULL;
    for (size_t i = 1; i < o->cache_setting_count; i++)
        if (strcmp(o->cache_settings[i].cache, o->cache_settings[0].cache) != 0)
            return err_new(STATUS_INVALID_ARG,
                           "found multiple cache configurations, but only a single cache is "
                           "currently supported: '%s' and '%s'",
                           o->cache_settings[0].cache, o->cache_settings[i].cache);
    yyjson_mut_doc *doc = options_cache_begin(o);
    yyjson_mut_val *root = yyjson_mut_doc_get_root(doc);
    for (size_t i = 0; i < o->cache_setting_count; i++) {
        const struct options_cache_setting *s = &o->cache_settings[i];
        if (!*s->key)
            continue;
        yyjson_mut_obj_remove_key(root, s->key);
        yyjson_mut_obj_add_str(doc, root, s->key, s->value);
    }
    char *json = yyjson_mut_write(doc, 0, NULL);
    CHECK(json);
    *ret_config = json;
    yyjson_mut_doc_free(doc);
    *ret_name = o->cache_settings[0].cache;
    return NULL;
}
