#include "isolate/wire/isolate_settings.h"

#include "base/mem.h"
#include "proto/model_config.pb-c.h"

#include <stdlib.h>
#include <string.h>

#define MOST_SECS  1e6
#define MOST_MB    (1e6 * 4)
#define GRACE_SECS 5

static const char *isolate_settings_find(const Inference__ModelConfig *proto, const char *key)
{
    for (size_t i = 0; i < proto->n_parameters; i++) {
        const Inference__ModelConfig__ParametersEntry *p = proto->parameters[i];
        if (strcmp(p->key, key) == 0)
            return p->value && p->value->string_value ? p->value->string_value : "";
    }
    return NULL;
}

/* Checks the name of a parameter: with a misspelled name, a process would have more rights than
 * intended. */
static struct err *isolate_settings_check_name(const Inference__ModelConfig *proto, const char *key,
                                               bool isolation)
{
    static const char *const names[] = {
        "ISOLATION_MEMORY_MB",  "ISOLATION_EXECUTE_TIMEOUT_SECS",
        "ISOLATION_GRACE_SECS", "ISOLATION_ENVIRONMENT",
        "ISOLATION_USER",       "ISOLATION_DENY",
        "ISOLATION_FILES",
    };
    bool known = false;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        known = known || strcmp(key, names[i]) == 0;
    if (!known)
        return err_new(STATUS_INVALID_ARG,
                       "model '%s': there is no parameter '%s': expected ISOLATION_MEMORY_MB, "
                       "_EXECUTE_TIMEOUT_SECS, _GRACE_SECS, _ENVIRONMENT, _USER, _DENY or _FILES",
                       proto->name, key);
    if (!isolation)
        return err_new(STATUS_INVALID_ARG,
                       "model '%s': parameter '%s' does nothing without parameter 'ISOLATION': add "
                       "it as 'process', or as 'none' to run the model in the server",
                       proto->name, key);
    return NULL;
}

static struct err *check_names(const Inference__ModelConfig *proto, bool isolation)
{
    static const char prefix[] = "ISOLATION_";
    struct err *e = NULL;
    for (size_t i = 0; !e && i < proto->n_parameters; i++)
        if (strncmp(proto->parameters[i]->key, prefix, strlen(prefix)) == 0)
            e = isolate_settings_check_name(proto, proto->parameters[i]->key, isolation);
    return e;
}

static struct err *isolate_settings_read_number(const Inference__ModelConfig *proto,
                                                const char *key, double most, double *ret)
{
    const char *text = isolate_settings_find(proto, key);
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

#define BETWEEN " \t\n,"

/* Calls `take` for each word; words are separated by blanks or commas. */
static struct err *for_each_word(const char *text, struct isolate_settings *s,
                                 struct err *(*take)(struct isolate_settings *, const char *,
                                                     size_t))
{
    struct err *e = NULL;
    while (!e && text && *(text += strspn(text, BETWEEN))) {
        size_t len = strcspn(text, BETWEEN);
        e = take(s, text, len);
        text += len;
    }
    return e;
}

static struct err *take_deny(struct isolate_settings *s, const char *word, size_t len)
{
    static const char *const names[] = {"network", "programs", "files"};
    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (len == strlen(names[i]) && memcmp(word, names[i], len) == 0) {
            s->deny |= 1u << i;
            return NULL;
        }
    return err_new(STATUS_INVALID_ARG,
                   "parameter 'ISOLATION_DENY': expected 'network', 'programs' or 'files', found "
                   "'%.*s'",
                   (int)len, word);
}

void isolate_settings_add_file(struct isolate_settings *s, const char *path, size_t len, bool write)
{
    strbuf_printf(&s->files, "%c %.*s\n", write ? 'w' : 'r', (int)len, path);
}

static struct err *take_file(struct isolate_settings *s, const char *word, size_t len)
{
    bool write = len > 3 && memcmp(word + len - 3, ":rw", 3) == 0;
    if (*word != '/')
        return err_new(STATUS_INVALID_ARG,
                       "parameter 'ISOLATION_FILES': expected paths from the root on, found '%.*s'",
                       (int)len, word);
    isolate_settings_add_file(s, word, write ? len - 3 : len, write);
    return NULL;
}

static char *isolate_settings_copy(const char *text)
{
    return text ? mem_strdup(text) : NULL;
}

/* Reads what the process may do. */
static struct err *read_bounds(const Inference__ModelConfig *proto, struct isolate_settings *s)
{
    s->environment = isolate_settings_copy(isolate_settings_find(proto, "ISOLATION_ENVIRONMENT"));
    s->user = isolate_settings_copy(isolate_settings_find(proto, "ISOLATION_USER"));
    struct err *e = for_each_word(isolate_settings_find(proto, "ISOLATION_DENY"), s, take_deny);
    if (!e)
        e = for_each_word(isolate_settings_find(proto, "ISOLATION_FILES"), s, take_file);
    return err_wrap(e, "model '%s'", proto->name);
}

void isolate_settings_fini(struct isolate_settings *s)
{
    mem_free(s->environment);
    mem_free(s->user);
    strbuf_fini(&s->files);
}

struct err *isolate_settings_read(const struct Inference__ModelConfig *proto,
                                  struct isolate_settings *ret)
{
    const char *mode = isolate_settings_find(proto, "ISOLATION");
    double memory_mb = 0;
    double execute = 0;
    double grace = GRACE_SECS;
    *ret = (struct isolate_settings){.wanted = mode && strcmp(mode, "process") == 0};
    if (mode && !ret->wanted && strcmp(mode, "none") != 0)
        return err_new(STATUS_INVALID_ARG,
                       "model '%s': parameter 'ISOLATION': expected 'process' or "
                       "'none', found '%s'",
                       proto->name, mode);
    struct err *e = check_names(proto, mode);
    if (!e)
        e = isolate_settings_read_number(proto, "ISOLATION_MEMORY_MB", MOST_MB, &memory_mb);
    if (!e)
        e = isolate_settings_read_number(proto, "ISOLATION_EXECUTE_TIMEOUT_SECS", MOST_SECS,
                                         &execute);
    if (!e)
        e = isolate_settings_read_number(proto, "ISOLATION_GRACE_SECS", MOST_SECS, &grace);
    if (!e)
        e = read_bounds(proto, ret);
    ret->memory_bytes = (uint64_t)(memory_mb * (1 << 20));
    ret->execute_ns = (time_ns)(execute * 1e9);
    ret->grace_ns = (time_ns)(grace * 1e9);
    return e;
}
