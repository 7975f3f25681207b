#pragma once
/* What a repository in a store consists of: objects by name, as one listing shows them. Pure;
 * immutable once it is sorted. */
#include "base/arena.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The most objects of a repository. */
#define LISTING_MAX_OBJECTS ((size_t)200000)

/* The most bytes of their names, tags and digests together. */
#define LISTING_MAX_BYTES ((size_t)256 << 20)

struct listing_object {
    /* below the repository: MODEL/... ; ends in '/' when it only marks a directory */
    const char *name;
    const char *tag; /* another whenever the content is another: an ETag or a generation */
    uint64_t size;
    const char *digest; /* what the store says of the content, as its kind reads it; "" = nothing */
};

struct listing {
    struct arena arena;
    struct listing_object *objects;
    size_t count;
    size_t cap;
    size_t max;
    size_t bytes; /* of all texts that were added */
    bool full;    /* one more was refused */
};

void listing_init(struct listing *l);
void listing_fini(struct listing *l);

/* listing_add - one more; the strings are copied.
 * errors  INVALID_ARG when there are too many, or too long ones: then it is `full`; or the name
 *         has a NUL */
struct err *listing_add(struct listing *l, const char *name, size_t name_len, uint64_t size,
                        const char *tag, const char *digest);

/* listing_sort - by name; names that come twice count once. Before anything below. */
void listing_sort(struct listing *l);

/* listing_next_model - the next directory at the top from *at on, which moves behind its
 * objects; false at the end. Names that begin with a dot, and objects beside the directories,
 * are left out.
 * ret, ret_len  its name */
bool listing_next_model(const struct listing *l, size_t *at, const char **ret, size_t *ret_len);

/* listing_model - the objects of one model: [*ret_first, *ret_first + *ret_count). */
void listing_model(const struct listing *l, const char *model, size_t *ret_first,
                   size_t *ret_count);

/* listing_check - names below a model that would leave its directory are refused. */
struct err *listing_check(const struct listing *l, size_t first, size_t count);

/* Which objects of a model: those of one version directory (its number), those beside all
 * version directories - of these the configuration, or what is none - or all. */
#define LISTING_REST   INT64_C(0)
#define LISTING_ALL    INT64_C(-1)
#define LISTING_CONFIG INT64_C(-2)
#define LISTING_BESIDE INT64_C(-3)

/* listing_in - whether the object is of that part.
 * path  behind "MODEL/" */
bool listing_in(const char *path, int64_t part);

/* listing_stamp - a number that changes when one of these objects changes, comes or goes; never
 * 0. */
uint64_t listing_stamp(const struct listing *l, size_t first, size_t count, int64_t part);
