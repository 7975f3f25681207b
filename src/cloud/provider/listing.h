#pragma once
/* The objects of a repository in a store, from one listing. Pure; immutable after it was sorted. */
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
    /* below the repository: MODEL/...; ends in '/' if it only marks a directory */
    const char *name;
    const char *tag; /* changes whenever the content changes: an ETag or a generation */
    uint64_t size;
    const char *digest; /* the store's digest of the content, in the form of its kind; "" = none */
};

struct listing {
    struct arena arena;
    struct listing_object *objects;
    size_t count;
    size_t cap;
    size_t max;
    size_t bytes; /* of all added texts */
    bool full;    /* an object was refused because of a limit */
};

void listing_init(struct listing *l);
void listing_fini(struct listing *l);

/* listing_add - add an object; the strings are copied.
 * errors  INVALID_ARG if there are too many objects or bytes, which sets `full`; or if the name
 *         contains a NUL */
struct err *listing_add(struct listing *l, const char *name, size_t name_len, uint64_t size,
                        const char *tag, const char *digest);

/* listing_sort - sort by name and remove duplicates. Call it before the functions below. */
void listing_sort(struct listing *l);

/* listing_next_model - the next directory at the top from *at on; *at then moves after its
 * objects. Returns false at the end. Names that begin with a dot, and objects outside
 * directories, are skipped.
 * ret, ret_len  its name */
bool listing_next_model(const struct listing *l, size_t *at, const char **ret, size_t *ret_len);

/* listing_model - the objects of one model: [*ret_first, *ret_first + *ret_count). */
void listing_model(const struct listing *l, const char *model, size_t *ret_first,
                   size_t *ret_count);

/* listing_check - refuse names below a model that would leave its directory. */
struct err *listing_check(const struct listing *l, size_t first, size_t count);

/* Parts of a model: a positive number is that version's directory; REST is everything outside
 * version directories, which is CONFIG (the configuration) plus BESIDE (other files); ALL is
 * everything. */
#define LISTING_REST   INT64_C(0)
#define LISTING_ALL    INT64_C(-1)
#define LISTING_CONFIG INT64_C(-2)
#define LISTING_BESIDE INT64_C(-3)

/* listing_in - true if the object belongs to that part.
 * path  after "MODEL/" */
bool listing_in(const char *path, int64_t part);

/* listing_stamp - a number that changes when an object of the part changes, is added or removed;
 * never 0. */
uint64_t listing_stamp(const struct listing *l, size_t first, size_t count, int64_t part);
