#include "isolate/isolate_settings.h"

#include "proto/model_config.pb-c.h"

#include <stdlib.h>
#include <string.h>

#define MOST_SECS  1e6
#define MOST_MB    (1e6 * 4)
#define GRACE_SECS 5

static const char *find(const Inference__ModelConfig *proto, const char *key)
{
    for (size_t i = 0; i < proto->n_parameters; i++) {
        const Inference__ModelConfig__ParametersEntry *p = proto->parameters[i];
        if (strcmp(p->key, key) == 0)
            return p->value && p->value->string_value ? p->value->string_value : "";
    }
    return NULL;
}

static struct err *read_number(const Inference__ModelConfig *proto, const char *key, double most,
                               double *ret)
{
    const char *text = find(proto, key);
    if (!text)
        return NULL;
    char *end;
    double n = strtod(text, &end);
    if (end == text || *end || !(n > 0) || n > most)
        return err_new(STATUS_INVALID_ARG,
                       "model '%s': parameter '%s': expected a number above 0 and "
                       "up to %g, found '%s'",
                       proto->name, key, most, text);
    *ret = n;
    return NULL;
}

struct err *isolate_settings_read(const struct Inference__ModelConfig *proto,
                                  struct isolate_settings *ret)
{
    const char *mode = find(proto, "ISOLATION");
    double memory_mb = 0;
    double execute = 0;
    double grace = GRACE_SECS;
    *ret = (struct isolate_settings){.wanted = mode && strcmp(mode, "process") == 0};
    if (mode && !ret->wanted && strcmp(mode, "none") != 0)
        return err_new(STATUS_INVALID_ARG,
                       "model '%s': parameter 'ISOLATION': expected 'process' or "
                       "'none', found '%s'",
                       proto->name, mode);
    struct err *e = read_number(proto, "ISOLATION_MEMORY_MB", MOST_MB, &memory_mb);
    if (!e)
        e = read_number(proto, "ISOLATION_EXECUTE_TIMEOUT_SECS", MOST_SECS, &execute);
    if (!e)
        e = read_number(proto, "ISOLATION_GRACE_SECS", MOST_SECS, &grace);
    ret->memory_bytes = (uint64_t)(memory_mb * (1 << 20));
    ret->execute_ns = (time_ns)(execute * 1e9);
    ret->grace_ns = (time_ns)(grace * 1e9);
    return e;
}
