#include "server/options/options_front.h"

#include "server/options/options_row.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum options_category options_front_category(const char *name, size_t len)
{
    static const char *const names[OPTIONS_CATEGORY_NONE] = {
        "health",           "metadata",   "inference", "shared-memory", "model-config",
        "model-repository", "statistics", "trace",     "logging",       "metrics"};
    for (size_t i = 0; i < OPTIONS_CATEGORY_NONE; i++)
        if (strlen(names[i]) == len && memcmp(names[i], name, len) == 0)
            return (enum options_category)i;
    return OPTIONS_CATEGORY_NONE;
}

/* <category>[,<category>...]:<header>=<value> */
struct err *options_front_restrict(const struct options_row *row, const char *value,
                                   struct options *o, struct options_restrictions *field)
{
    const char *colon = strchr(value, ':');
    const char *equals = colon ? strchr(colon, '=') : NULL;
    if (!colon || !equals || colon == value || equals == colon + 1 || !equals[1])
        return options_value_bad(row, value, "<category>[,<category>...]:<header>=<value>");
    struct options_restriction r = {
        .header = options_value_keep(o, colon + 1, (size_t)(equals - colon - 1)),
        .value = equals + 1,
    };
    for (const char *at = value; at <= colon;) {
        size_t len = strcspn(at, ",:");
        enum options_category category = options_front_category(at, len);
        if (category >= OPTIONS_CATEGORIES)
            return err_new(STATUS_INVALID_ARG,
                           "option --%s: expected categories of " OPTIONS_CATEGORY_NAMES
                           ", found '%.*s'",
                           row->name, (int)len, at);
        if (field->of[category].header && !field->of[category].of_file)
            return err_new(STATUS_INVALID_ARG, "option --%s: '%.*s' is restricted twice", row->name,
                           (int)len, at);
        field->of[category] = r;
        at += len + 1;
    }
    field->any = true;
    return NULL;
}

void options_front_of_file(struct options_restrictions *r)
{
    for (size_t i = 0; i < OPTIONS_CATEGORIES; i++)
        r->of[i].of_file = true;
}

/* scheme://host or scheme://host:port, as browsers write it: in small letters. */
static bool is_origin(const char *value)
{
    size_t scheme = strspn(value, "abcdefghijklmnopqrstuvwxyz0123456789+-.");
    if (!scheme || strncmp(value + scheme, "://", 3) != 0)
        return false;
    const char *host = value + scheme + 3;
    size_t len = strspn(host, "abcdefghijklmnopqrstuvwxyz0123456789-._~[]:%");
    return len && !host[len] && scheme + 3 + len <= OPTIONS_MAX_ORIGIN_BYTES;
}

struct err *options_front_origin(const struct options_row *row, const char *value,
                                 struct options *o)
{
    if (strcmp(value, "*") != 0 && !is_origin(value))
        return options_value_bad(
            row, value,
            "*, or an origin as browsers send it, in small letters and without a slash at its "
            "end, such as https://app.example or http://localhost:3000");
    if (o->http_cors_origin_count == OPTIONS_MAX_CORS_ORIGINS)
        return err_new(STATUS_INVALID_ARG, "option --%s: at most %d origins can be given",
                       row->name, OPTIONS_MAX_CORS_ORIGINS);
    o->http_cors_origins[o->http_cors_origin_count++] = value;
    return NULL;
}

struct err *options_front_compression(const struct options_row *row, const char *value,
                                      enum options_compression *field)
{
    static const char *const levels[] = {"none", "low", "medium", "high"};
    for (int i = OPTIONS_COMPRESSION_NONE; i <= OPTIONS_COMPRESSION_HIGH; i++) {
        if (strcasecmp(value, levels[i]) == 0) {
            *field = (enum options_compression)i;
            return NULL;
        }
    }
    return options_value_bad(row, value, "none, low, medium or high");
}

/* Reads one <quantile>:<error>. As in the reference, blanks before a number and any text after
 * it are ignored. */
static bool read_quantile(const char *part, double *ret)
{
    const char *colon = strchr(part, ':');
    char *end;
    *ret = strtod(part, &end);
    if (!colon || end == part || end > colon)
        return false;
    strtod(colon + 1, &end);
    return end != colon + 1 && *ret >= 0 && *ret <= 1;
}

/* Reads <quantile>:<error>,... The error depends on the histogram's buckets, so the second
 * number is only checked. As in the reference, an unreadable quantile is skipped with a warning;
 * if none is left, the default quantiles stay. */
static struct err *read_quantiles(const struct options_row *row, const char *value,
                                  struct options *o, struct options_latencies *field)
{
    struct options_latencies got = *field;
    got.quantile_count = 0;
    for (const char *at = strchr(value, '=') + 1, *next; *at; at = next) {
        size_t len = strcspn(at, ",");
        const char *part = options_value_keep(o, at, len);
        double quantile;
        next = at + len + (at[len] == ',');
        if (!read_quantile(part, &quantile))
            options_value_warn(o,
                               "option --%s: summary_quantiles: '%s' is left out: expected "
                               "<quantile>:<error>, numbers from 0 to 1",
                               row->name, part);
        else if (got.quantile_count == OPTIONS_MAX_QUANTILES)
            return err_new(STATUS_INVALID_ARG, "option --%s: at most %d quantiles can be given",
                           row->name, OPTIONS_MAX_QUANTILES);
        else
            got.quantiles[got.quantile_count++] = quantile;
    }
    if (got.quantile_count)
        *field = got;
    return NULL;
}

struct err *options_front_latencies(const struct options_row *row, const char *value,
                                    struct options *o, struct options_latencies *field)
{
    static const char form[] =
        "counter_latencies, summary_latencies or histogram_latencies =<boolean>, or "
        "summary_quantiles=<quantile>:<error>,...";
    size_t len = strcspn(value, "=");
    bool yes;
    if (!value[len])
        return options_value_bad(row, value, form);
    if (len == 17 && memcmp(value, "summary_quantiles", len) == 0)
        return read_quantiles(row, value, o, field);
    if (!options_value_bool(value + len + 1, &yes))
        return options_value_bad(row, value, form);
    if (len == 17 && memcmp(value, "counter_latencies", len) == 0)
        field->no_counters = !yes;
    else if (len == 17 && memcmp(value, "summary_latencies", len) == 0)
        field->summaries = yes;
    else if (len == 19 && memcmp(value, "histogram_latencies", len) == 0)
        field->histograms = yes;
    else
        return options_value_bad(row, value, form);
    return NULL;
}
