#include "tracing/tracing_settings.h"

#include "triton/core/tritonserver.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct err *tracing_settings_level(struct tracing_change *c, const char *word, size_t count)
{
    uint32_t bit = 0;
    if (strcmp(word, "OFF") == 0) {
        if (count != 1)
            return err_new(STATUS_INVALID_ARG, "Expect only one trace level 'OFF' is specified");
    } else if (strcmp(word, "TIMESTAMPS") == 0) {
        bit = TRITONSERVER_TRACE_LEVEL_TIMESTAMPS;
    } else if (strcmp(word, "TENSORS") == 0) {
        bit = TRITONSERVER_TRACE_LEVEL_TENSORS;
    } else {
        return NULL;
    }
    c->set |= TRACING_LEVEL;
    c->to.level |= bit;
    return NULL;
}

static const char *tracing_settings_name(unsigned which)
{
    return which == TRACING_RATE    ? "trace_rate"
           : which == TRACING_COUNT ? "trace_count"
                                    : "log_frequency";
}

struct err *tracing_settings_number(struct tracing_change *c, unsigned which, const char *text,
                                    bool spaced)
{
    const char *name = tracing_settings_name(which);
    char *end;
    errno = 0;
    long n = strtol(text, &end, 10);
    if (end == text)
        return err_new(STATUS_INVALID_ARG, "Unable to parse '%s', got: %s", name, text);
    if (errno == ERANGE || n < INT32_MIN || n > INT32_MAX) {
        const char *range = which == TRACING_COUNT ? "[ -1, 2147483647 ]" : "[ 0, 4294967295 ]";
        return err_new(STATUS_INVALID_ARG,
                       "Unable to parse '%s', value is out of range %s, got: %s", name, range,
                       text);
    }
    if (which == TRACING_COUNT && n < -1)
        return err_new(STATUS_INVALID_ARG, "Unable to parse '%s'. Expecting value >= -1, got:%s%s",
                       name, spaced ? " " : "", text);
    c->set |= which;
    if (which == TRACING_RATE)
        c->to.rate = (uint32_t)n;
    else if (which == TRACING_COUNT)
        c->to.count = (int32_t)n;
    else
        c->to.frequency = (uint32_t)n;
    return NULL;
}

struct err *tracing_settings_no_file(void)
{
    return err_new(STATUS_UNSUPPORTED,
                   "trace file location can not be updated through network protocol");
}

/* Those of the settings `which` are taken over from `from`. */
static void tracing_settings_take(struct tracing_values *to, unsigned which,
                                  const struct tracing_values *from)
{
    if (which & TRACING_LEVEL)
        to->level = from->level;
    if (which & TRACING_RATE)
        to->rate = from->rate;
    if (which & TRACING_COUNT)
        to->count = from->count;
    if (which & TRACING_FREQUENCY)
        to->frequency = from->frequency;
}

struct tracing_choice tracing_settings_resolve(const struct tracing_values *behind,
                                               const struct tracing_choice *current,
                                               const struct tracing_change *c)
{
    unsigned before = current ? current->specified : 0;
    struct tracing_choice ret = {.specified = (before | c->set) & ~c->clear, .values = *behind};
    if (current)
        tracing_settings_take(&ret.values, before & ~c->clear, &current->values);
    tracing_settings_take(&ret.values, c->set & ~c->clear, &c->to);
    return ret;
}

bool tracing_settings_valid(const struct tracing_values *v, bool has_target,
                            const char **ret_reason)
{
    *ret_reason = !v->level     ? "tracing is disabled"
                  : !v->rate    ? "sample rate must be non-zero"
                  : !has_target ? "trace file name is not given"
                                : "";
    return !**ret_reason && v->count;
}

bool tracing_settings_draw(struct tracing_values *v, struct tracing_drawn *d, bool forced)
{
    if (!v->rate || (!v->count && !forced))
        return forced;
    if (++d->seen % v->rate || !v->count)
        return forced;
    d->begun++;
    if (v->count > 0)
        v->count--;
    return true;
}

enum tracing_flush tracing_settings_flush(const struct tracing_values *v,
                                          const struct tracing_drawn *d, uint64_t waiting,
                                          uint64_t ended, bool full)
{
    if (v->frequency)
        return waiting >= v->frequency || full || (!v->count && ended >= d->begun)
                   ? TRACING_FLUSH_NUMBERED
                   : TRACING_FLUSH_LATER;
    if (v->count < 0 || full)
        return TRACING_FLUSH_PLAIN;
    return !v->count && ended >= d->begun ? TRACING_FLUSH_NUMBERED : TRACING_FLUSH_LATER;
}
