#include "regions/regions.h"

#include "base/mem.h"
#include "base/strbuf.h"
#include "codec/pb_utf8.h"
#include "os/mutex.h"
#include "regions/region.h"
#include "regions/regions_order.h"

#include <string.h>

struct regions {
    bool allowed;
    uint64_t max_bytes;
    struct regions_orders orders;
    struct mutex lock; /* rank LEAF; guards what follows, and the regions' users go up under it */
    struct region **sorted; /* by name; a reference each */
    size_t count;
    size_t room;
};

/* Of messages, by kind. */
static const char *const words[] = {[REGION_SYSTEM] = "system", [REGION_CUDA] = "cuda"};

struct regions *regions_new(bool allowed, uint64_t max_bytes)
{
    struct regions *s = MEM_NEW(struct regions);
    s->allowed = allowed;
    s->max_bytes = max_bytes;
    regions_order_init(&s->orders);
    mutex_init(&s->lock, MUTEX_RANK_LEAF);
    return s;
}

/* May wait for the driver. */
static void end_all(struct region **list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        region_unref_waiting(list[i]);
    mem_free(list);
}

void regions_free(struct regions *s)
{
    if (!s)
        return;
    regions_order_fini(&s->orders);
    end_all(s->sorted, s->count);
    mutex_fini(&s->lock);
    mem_free(s);
}

struct regions_orders *regions_orders(struct regions *s)
{
    return &s->orders;
}

void regions_stop(struct regions *s)
{
    regions_order_wait(&s->orders);
}

struct err *regions_allowed(const struct regions *s)
{
    if (s->allowed)
        return NULL;
    return err_new(STATUS_UNSUPPORTED, "Client shared memory is disabled. Start the server with "
                                       "'--allow-client-shm=true' to enable.");
}

static int regions_compare(struct regions_name name, const struct region *r)
{
    size_t len = strlen(r->name);
    size_t common = name.len < len ? name.len : len;
    int c = common ? memcmp(name.text, r->name, common) : 0;
    return c ? c : (name.len > len) - (name.len < len);
}

/* Where a name stands, or would stand. */
static size_t regions_find_place(const struct regions *s, struct regions_name name, bool *ret_there)
{
    size_t low = 0;
    size_t high = s->count;
    *ret_there = false;
    while (low < high && !*ret_there) {
        size_t middle = low + (high - low) / 2;
        int c = regions_compare(name, s->sorted[middle]);
        *ret_there = c == 0;
        if (c < 0)
            high = middle;
        else
            low = c ? middle + 1 : middle;
    }
    return low;
}

static struct region *find_locked(const struct regions *s, struct regions_name name)
{
    bool there;
    size_t at = regions_find_place(s, name, &there);
    return there ? s->sorted[at] : NULL;
}

static struct err *name_taken(struct regions_name name)
{
    return err_new(STATUS_ALREADY_EXISTS, "shared memory region '%.*s' already in manager",
                   (int)name.len, name.text);
}

/* Both protocols tell names and keys to every client, as text. */
static struct err *regions_check_name(struct regions_name name)
{
    bool fits = name.len <= REGION_MAX_NAME;
    if (fits && (!name.len || !memchr(name.text, 0, name.len)) &&
        pb_utf8_valid(name.text, name.len))
        return NULL;
    return err_new(STATUS_INVALID_ARG,
                   "the name of a shared memory region has at most %u bytes and no zero byte, and "
                   "is UTF-8",
                   REGION_MAX_NAME);
}

/* Takes the reference over when nobody was faster. */
static struct err *regions_add(struct regions *s, struct regions_name name, struct region *r)
{
    bool there;
    mutex_lock(&s->lock);
    size_t at = regions_find_place(s, name, &there);
    if (!there) {
        if (s->count == s->room) {
            s->room = s->room ? 2 * s->room : 16;
            s->sorted = mem_realloc(s->sorted, s->room * sizeof(struct region *));
        }
        memmove(s->sorted + at + 1, s->sorted + at, (s->count - at) * sizeof(struct region *));
        s->sorted[at] = r;
        s->count++;
    }
    mutex_unlock(&s->lock);
    return there ? name_taken(name) : NULL;
}

static bool is_name_taken(struct regions *s, struct regions_name name)
{
    mutex_lock(&s->lock);
    bool there = find_locked(s, name);
    mutex_unlock(&s->lock);
    return there;
}

static struct err *regions_check_new(struct regions *s, struct regions_name name)
{
    struct err *e = regions_allowed(s);
    if (!e)
        e = regions_check_name(name);
    if (!e && is_name_taken(s, name))
        e = name_taken(name);
    return e;
}

/* Takes over what was opened, and the error if it was not. */
static struct err *regions_keep(struct regions *s, struct regions_name name, struct region *r,
                                struct err *e)
{
    if (!e)
        e = regions_add(s, name, r);
    if (e)
        region_unref_waiting(r);
    return e;
}

struct err *regions_register(struct regions *s, struct regions_name name, const char *key,
                             uint64_t offset, uint64_t byte_size)
{
    struct err *e = regions_check_new(s, name);
    if (e)
        return e;
    struct region *r = NULL;
    char *copy = mem_strndup(name.text, name.len);
    e = region_open(copy, key, offset, byte_size, s->max_bytes, &r);
    mem_free(copy);
    return regions_keep(s, name, r, e);
}

struct err *regions_register_cuda(struct regions *s, struct regions_name name,
                                  const struct cuda_ipc_handle *handle, int64_t device,
                                  uint64_t byte_size)
{
    struct err *e = regions_check_new(s, name);
    if (e)
        return e;
    struct region *r = NULL;
    char *copy = mem_strndup(name.text, name.len);
    e = region_open_cuda(copy, handle, device, byte_size, s->max_bytes, s->orders.crew, &r);
    mem_free(copy);
    return regions_keep(s, name, r, e);
}

static bool is_meant(const struct region *r, enum region_kind kind, struct regions_name name)
{
    return r->kind == kind && (!name.len || regions_compare(name, r) == 0);
}

/* Takes out what nobody uses; the rest is named. `gone` has room for all. */
static size_t take_out(struct regions *s, enum region_kind kind, struct regions_name name,
                       struct region **gone, struct strbuf *used)
{
    size_t kept = 0, out = 0;
    for (size_t i = 0; i < s->count; i++) {
        struct region *r = s->sorted[i];
        bool meant = is_meant(r, kind, name);
        bool in_use = meant && atomic_load(&r->users) > 0;
        if (in_use)
            strbuf_printf(used, "%s ,", r->name);
        if (meant && !in_use)
            gone[out++] = r;
        else
            s->sorted[kept++] = r;
    }
    s->count = kept;
    return out;
}

struct err *regions_unregister(struct regions *s, enum region_kind kind, struct regions_name name)
{
    struct err *e = regions_allowed(s);
    if (e)
        return e;
    struct strbuf used = STRBUF_INIT;
    mutex_lock(&s->lock);
    struct region **gone = mem_alloc((s->count + 1) * sizeof(struct region *));
    size_t count = take_out(s, kind, name, gone, &used);
    mutex_unlock(&s->lock);
    end_all(gone, count);
    if (used.len && name.len)
        e = err_new(STATUS_INTERNAL,
                    "Cannot unregister shared memory region '%.*s', it is currently in use.",
                    (int)name.len, name.text);
    else if (used.len)
        e = err_new(STATUS_INTERNAL,
                    "Failed to unregister the following %s shared memory regions: %s", words[kind],
                    strbuf_str(&used));
    strbuf_fini(&used);
    return e;
}

/* Why there is no region of this kind and name; `other` has the name. */
static struct err *not_found(enum region_kind kind, struct regions_name name, bool other)
{
    if (!other)
        return err_new(STATUS_NOT_FOUND, "Unable to find %s shared memory region: '%.*s'",
                       words[kind], (int)name.len, name.text);
    return err_new(STATUS_NOT_FOUND,
                   "The region named '%.*s' is registered as %s shared memory, not %s shared "
                   "memory",
                   (int)name.len, name.text, kind == REGION_CUDA ? "system" : "CUDA",
                   kind == REGION_CUDA ? "CUDA" : "system");
}

struct err *regions_list(struct regions *s, enum region_kind kind, struct regions_name name,
                         struct region ***ret, size_t *ret_count)
{
    mutex_lock(&s->lock);
    struct region **list = mem_alloc((s->count + 1) * sizeof(struct region *));
    size_t count = 0;
    bool other = find_locked(s, name);
    for (size_t i = 0; i < s->count; i++)
        if (is_meant(s->sorted[i], kind, name))
            list[count++] = region_ref(s->sorted[i]);
    mutex_unlock(&s->lock);
    if (!count && name.len) {
        mem_free(list);
        return not_found(kind, name, other);
    }
    *ret = list;
    *ret_count = count;
    return NULL;
}

void regions_list_free(struct region **list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        region_unref(list[i]);
    mem_free(list);
}

static struct err *check_part(struct region *r, uint64_t offset, uint64_t byte_size)
{
    if (offset >= r->byte_size)
        return err_new(STATUS_INVALID_ARG, "Invalid offset for shared memory region: '%s'",
                       r->name);
    if (!byte_size || byte_size > r->byte_size - offset)
        return err_new(STATUS_INVALID_ARG,
                       "Invalid offset + byte size for shared memory region: '%s'", r->name);
    return region_check(r, "after it was registered");
}

struct err *regions_use(struct regions *s, struct regions_name name, uint64_t offset,
                        uint64_t byte_size, struct region **ret, uint8_t **ret_data)
{
    mutex_lock(&s->lock);
    struct region *r = find_locked(s, name);
    if (r) {
        region_ref(r);
        atomic_fetch_add(&r->users, 1);
    }
    mutex_unlock(&s->lock);
    if (!r)
        return err_new(STATUS_NOT_FOUND, "Unable to find shared memory region: '%.*s'",
                       (int)name.len, name.text);
    struct err *e = check_part(r, offset, byte_size);
    if (e) {
        regions_unuse(r);
        region_unref(r);
        return e;
    }
    *ret = r;
    *ret_data = r->base + offset;
    return NULL;
}

void regions_unuse(struct region *r)
{
    atomic_fetch_sub(&r->users, 1);
}
