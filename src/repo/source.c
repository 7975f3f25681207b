#include "repo/source.h"

#include "base/mem.h"
#include "base/strbuf.h"
#include "cloud/cloud.h"
#include "cloud/provider/listing.h"
#include "model/version_policy.h"
#include "os/files/stamp.h"
#include "os/files/tree.h"
#include "repo/agents.h"
#include "repo/load/local.h"

#include <inttypes.h>
#include <string.h>

struct source *source_new(char *dir, bool temporary)
{
    struct source *s = MEM_NEW(struct source);
    atomic_init(&s->refs, 1);
    s->dir = dir;
    s->temporary = temporary;
    return s;
}

struct source *source_of_copy(struct cloud_copy *copy)
{
    struct source *s = source_new(mem_strdup(cloud_copy_dir(copy)), false);
    s->copy = copy;
    return s;
}

struct source *source_moved(struct source *from, const char *dir, struct agents_set *agents)
{
    struct source *s = source_new(mem_strdup(dir), false);
    s->agents = agents;
    s->under = from;
    return s;
}

struct source *source_ref(struct source *s)
{
    atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    return s;
}

void source_unref(struct source *s)
{
    if (!s || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1)
        return;
    agents_end(s->agents);
    source_unref(s->under);
    if (s->temporary)
        tree_remove(s->dir);
    cloud_copy_free(s->copy);
    mem_free(s->dir);
    mem_free(s);
}

static bool source_is_config(const char *name)
{
    return strcmp(name, "config.pbtxt") == 0 || strcmp(name, "configs") == 0;
}

static uint64_t *source_part(void *owner, const char *name, bool is_dir)
{
    struct source_look *l = owner;
    int64_t number;
    if (source_is_config(name))
        return &l->config;
    if (!version_policy_parse_dir(name, &number))
        return &l->beside;
    /* One more than allowed is enough to refuse them. */
    if (is_dir && l->version_count <= LOCAL_MAX_ENTRIES) {
        l->versions = mem_realloc(l->versions, (l->version_count + 1) * sizeof(*l->versions));
        l->versions[l->version_count++] = number;
    }
    return NULL;
}

struct err *source_look(const struct source *s, struct source_look *ret)
{
    *ret = (struct source_look){0};
    struct err *e = stamp_parts(s->dir, source_part, ret);
    if (!e && ret->version_count > LOCAL_MAX_ENTRIES)
        e = err_new(STATUS_INVALID_ARG, "'%s' has more than %zu versions", s->dir,
                    LOCAL_MAX_ENTRIES);
    if (e) {
        source_look_fini(ret);
        return e;
    }
    if (s->copy) {
        ret->config = cloud_copy_stamp(s->copy, LISTING_CONFIG);
        ret->beside = cloud_copy_stamp(s->copy, LISTING_BESIDE);
    }
    return NULL;
}

void source_look_fini(struct source_look *l)
{
    mem_free(l->versions);
    *l = (struct source_look){0};
}

struct err *source_stamp(const struct source *s, int64_t version, uint64_t *ret)
{
    if (s->copy) {
        *ret = cloud_copy_stamp(s->copy, version);
        return NULL;
    }
    struct strbuf path = STRBUF_INIT;
    strbuf_printf(&path, "%s/%" PRId64, s->dir, version);
    struct err *e = stamp_directory(strbuf_str(&path), ret);
    strbuf_fini(&path);
    return e;
}

struct err *source_fetch(struct source *s, int64_t version)
{
    return s->copy ? cloud_copy_version(s->copy, version) : NULL;
}

bool source_changed(const struct source *s)
{
    return s && (cloud_copy_changed(s->copy) || source_changed(s->under));
}
