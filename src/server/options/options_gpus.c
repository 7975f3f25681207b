#include "server/options/options_gpus.h"

#include "server/options/options_row.h"

#include <errno.h>
#include <stdlib.h>

static bool options_gpus_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Reads <gpu>:, and returns what follows; NULL if there is no such beginning. A GPU that is not
 * there may be named: options are written for many machines. */
static const char *read_device(const char *text, int32_t *ret)
{
    char *end;
    errno = 0;
    long n = strtol(text, &end, 10);
    if (!options_gpus_is_digit(*text) || *end != ':' || errno || n > INT32_MAX)
        return NULL;
    *ret = (int32_t)n;
    return end + 1;
}

static bool options_gpus_read_real(const char *text, double *ret)
{
    char *end;
    errno = 0;
    double n = strtod(text, &end);
    bool ok = end != text && !*end && !errno;
    if (ok)
        *ret = n;
    return ok;
}

static bool read_bytes(const char *text, uint64_t *ret)
{
    char *end;
    errno = 0;
    unsigned long long n = strtoull(text, &end, 10);
    bool ok = options_gpus_is_digit(*text) && !*end && !errno;
    if (ok)
        *ret = n;
    return ok;
}

static struct err *options_gpus_too_many(const struct options_row *row)
{
    return err_new(STATUS_INVALID_ARG, "option --%s: at most %d can be given", row->name,
                   OPTIONS_MAX_GPUS);
}

/* <gpu>:<bytes> */
static struct err *add_pool(const struct options_row *row, const char *value,
                            struct options_gpus *o)
{
    struct options_gpu_bytes s;
    const char *rest = read_device(value, &s.device);
    if (!rest || !read_bytes(rest, &s.bytes))
        return options_value_bad(row, value, row->value);
    size_t at = 0;
    while (at < o->pool_count && o->pools[at].device != s.device)
        at++;
    if (at == OPTIONS_MAX_GPUS)
        return options_gpus_too_many(row);
    o->pools[at] = s;
    o->pool_count += at == o->pool_count;
    return NULL;
}

/* <gpu>:<fraction> */
static struct err *add_limit(const struct options_row *row, const char *value,
                             struct options_gpus *o)
{
    struct options_gpu_fraction s;
    const char *rest = read_device(value, &s.device);
    if (!rest || !options_gpus_read_real(rest, &s.fraction) ||
        !(s.fraction >= 0 && s.fraction <= 1))
        return options_value_bad(row, value, "<gpu>:<fraction>, the fraction from 0 to 1");
    size_t at = 0;
    while (at < o->limit_count && o->limits[at].device != s.device)
        at++;
    if (at == OPTIONS_MAX_GPUS)
        return options_gpus_too_many(row);
    o->limits[at] = s;
    o->limit_count += at == o->limit_count;
    return NULL;
}

struct err *options_gpus_set(const struct options_row *row, const char *value, struct options *o)
{
    if (row->kind == OPTIONS_KIND_GPU_POOL)
        return add_pool(row, value, &o->gpus);
    if (row->kind == OPTIONS_KIND_GPU_LIMIT)
        return add_limit(row, value, &o->gpus);
    return options_gpus_read_real(value, &o->gpus.least_capability)
               ? NULL
               : options_value_bad(row, value, row->value);
}
