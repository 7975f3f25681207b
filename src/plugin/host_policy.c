#include "plugin/host_policy.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "codec/json_out.h"
#include "os/process/cpu_bind.h"
#include "proto/model_config.pb-c.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { CORES, NODE, KEYS };

static const char *const keys[KEYS] = {"cpu-cores", "numa-node"};

struct host_policy {
    char *name;
    char *values[KEYS]; /* NULL = not set */
};

struct err *host_policy_check_key(const char *key)
{
    for (size_t k = 0; k < KEYS; k++)
        if (strcmp(key, keys[k]) == 0)
            return NULL;
    return err_new(STATUS_UNSUPPORTED,
                   "Unsupported host policy setting '%s' is specified, supported settings are "
                   "'numa-node', 'cpu-cores'",
                   key);
}

static char *name_of(TRITONSERVER_InstanceGroupKind kind, int32_t device,
                     const Inference__ModelInstanceGroup *group)
{
    struct strbuf name = STRBUF_INIT;
    if (*group->host_policy)
        strbuf_puts(&name, group->host_policy);
    else if (kind == TRITONSERVER_INSTANCEGROUPKIND_GPU)
        strbuf_printf(&name, "gpu_%d", device);
    else
        strbuf_puts(&name, kind == TRITONSERVER_INSTANCEGROUPKIND_MODEL ? "model" : "cpu");
    return strbuf_take(&name);
}

struct host_policy *host_policy_named(const struct host_policies *all, const char *name)
{
    struct host_policy *p = MEM_NEW(struct host_policy);
    p->name = mem_strdup(name);
    for (size_t i = 0; all && i < all->count; i++) {
        const struct host_policy_setting *s = &all->settings[i];
        for (size_t k = 0; k < KEYS && strcmp(s->policy, p->name) == 0; k++) {
            if (strcmp(s->key, keys[k]) != 0)
                continue;
            mem_free(p->values[k]);
            p->values[k] = mem_strdup(s->value);
        }
    }
    return p;
}

struct host_policy *host_policy_new(const struct host_policies *all,
                                    TRITONSERVER_InstanceGroupKind kind, int32_t device,
                                    const struct Inference__ModelInstanceGroup *group)
{
    char *name = name_of(kind, device, group);
    struct host_policy *p = host_policy_named(all, name);
    mem_free(name);
    return p;
}

void host_policy_free(struct host_policy *p)
{
    if (!p)
        return;
    for (size_t k = 0; k < KEYS; k++)
        mem_free(p->values[k]);
    mem_free(p->name);
    mem_free(p);
}

const char *host_policy_name(const struct host_policy *p)
{
    return p->name;
}

const char *host_policy_value(const struct host_policy *p, const char *key)
{
    for (size_t k = 0; k < KEYS; k++)
        if (strcmp(key, keys[k]) == 0)
            return p->values[k];
    return NULL;
}

bool host_policy_binds(const struct host_policy *p)
{
    return p->values[CORES] || p->values[NODE];
}

char *host_policy_json(const struct host_policy *p, size_t *ret_len)
{
    struct strbuf sb = STRBUF_INIT;
    const char *comma = "";
    strbuf_puts(&sb, "{");
    json_out_put(&sb, p->name);
    strbuf_puts(&sb, ":{");
    for (size_t k = 0; k < KEYS; k++) {
        if (!p->values[k])
            continue;
        strbuf_printf(&sb, "%s\"%s\":", comma, keys[k]);
        json_out_put(&sb, p->values[k]);
        comma = ",";
    }
    strbuf_puts(&sb, "}}");
    *ret_len = sb.len;
    return strbuf_take(&sb);
}

static struct err *parse_number(const char *key, const char *text, size_t len, int *ret)
{
    char room[32];
    char *end = room;
    long n = 0;
    if (len < sizeof(room)) {
        memcpy(room, text, len);
        room[len] = '\0';
        errno = 0;
        n = strtol(room, &end, 10);
    }
    if (end == room || *end || errno || n < INT_MIN || n > INT_MAX)
        return err_new(STATUS_INVALID_ARG, "Parsing '%s' value: Can't parse '%.*s' to integer", key,
                       (int)len, text);
    *ret = (int)n;
    return NULL;
}

/* LOWER-UPPER[,LOWER-UPPER...] */
static struct err *parse_cores(const char *text, bool cores[CPU_BIND_CORES])
{
    for (;;) {
        size_t len = strcspn(text, ",");
        const char *dash = memchr(text, '-', len);
        if (!dash)
            return err_new(STATUS_INVALID_ARG,
                           "host policy setting 'cpu-cores' format is "
                           "'<lower_cpu_core_id>-<upper_cpu_core_id>'. Got %.*s",
                           (int)len, text);
        int lower = 0;
        int upper = 0;
        size_t before = (size_t)(dash - text);
        struct err *e = parse_number(keys[CORES], text, before, &lower);
        if (!e)
            e = parse_number(keys[CORES], dash + 1, len - before - 1, &upper);
        if (e)
            return e;
        for (int i = lower; i <= upper && i < CPU_BIND_CORES; i++)
            cores[i] = true;
        if (!text[len])
            return NULL;
        text += len + 1;
    }
}

/* What the system refuses is told with the policy, which a model's configuration names seldom. Not
 * so for nodes, where the reference's words are the same. */
static struct err *bind_cores(const struct host_policy *p)
{
    bool cores[CPU_BIND_CORES] = {false};
    struct err *e = parse_cores(p->values[CORES], cores);
    int rc = e ? 0 : cpu_bind_cores(cores);
    return rc ? err_errno(rc,
                          "cpu-cores=%s of host policy '%s': Unable to set NUMA thread affinity",
                          p->values[CORES], p->name)
              : e;
}

static struct err *bind_memory(const struct host_policy *p)
{
    int node = 0;
    struct err *e = parse_number(keys[NODE], p->values[NODE], strlen(p->values[NODE]), &node);
    int rc = e ? 0 : cpu_bind_memory(node);
    if (rc == EPERM || rc == ENOSYS) {
        LOG_WARN("host policy '%s': NUMA nodes cannot be chosen here: %s", p->name, strerror(rc));
        return NULL;
    }
    return rc ? err_errno(rc, "Unable to set NUMA memory policy") : e;
}

struct err *host_policy_bind(const struct host_policy *p)
{
    struct err *e = p->values[CORES] ? bind_cores(p) : NULL;
    if (!e && p->values[NODE])
        e = bind_memory(p);
    return e;
}

struct err *host_policy_enter(const struct host_policy *p, struct cpu_bind **ret_was)
{
    *ret_was = NULL;
    if (!host_policy_binds(p))
        return NULL;
    *ret_was = cpu_bind_save();
    struct err *e = host_policy_bind(p);
    if (!e)
        return NULL;
    cpu_bind_restore(*ret_was);
    *ret_was = NULL;
    return e;
}
