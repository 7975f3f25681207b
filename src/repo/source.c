#include "repo/source.h"

#include "base/mem.h"
#include "base/strbuf.h"
#include "cloud/cloud.h"
#include "model/version_policy.h"
#include "os/stamp.h"
#include "os/tree.h"
#include "repo/agents.h"
#include "store/listing.h"

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

static bool is_config(const char *name)
{
    return strcmp(name, "config.pbtxt") == 0 || strcmp(name, "configs") == 0;
}

static bool is_no_config(const char *name)
{
    return !is_config(name);
}

static bool is_version_or_config(const char *name)
{
    int64_t ignored;
    return is_config(name) || version_policy_parse_dir(name, &ignored);
}

static struct err *stamp_of_disk(const char *dir, enum source_part part, int64_t version,
                                 uint64_t *ret)
{
    if (part == SOURCE_CONFIG)
        return stamp_directory(dir, is_no_config, ret);
    if (part == SOURCE_BESIDE)
        return stamp_directory(dir, is_version_or_config, ret);
    struct strbuf path = STRBUF_INIT;
    strbuf_printf(&path, "%s/%" PRId64, dir, version);
    struct err *e = stamp_directory(strbuf_str(&path), NULL, ret);
    strbuf_fini(&path);
    return e;
}

struct err *source_stamp(const struct source *s, enum source_part part, int64_t version,
                         uint64_t *ret)
{
    if (!s->copy)
        return stamp_of_disk(s->dir, part, version, ret);
    int64_t listed = part == SOURCE_CONFIG   ? LISTING_CONFIG
                     : part == SOURCE_BESIDE ? LISTING_BESIDE
                                             : version;
    *ret = cloud_copy_stamp(s->copy, listed);
    return NULL;
}

struct err *source_fetch(struct source *s, int64_t version)
{
    return s->copy ? cloud_copy_version(s->copy, version) : NULL;
}

bool source_changed(const struct source *s)
{
    return s && (cloud_copy_changed(s->copy) || source_changed(s->under));
}
