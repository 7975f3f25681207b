#pragma once
/* The model repositories of a server, on disk and in stores. Each of them is a place, a bit of
 * table_model.places. Private to repo/.
 *
 * A store that does not answer delays nothing else: work on several places waits at most
 * PLACES_PATIENCE_NS for it, and then uses the last listing that arrived. */
#include "base/err.h"
#include "os/clock.h"
#include "repo/repo.h"
#include "repo/load/local.h"

#include <stdbool.h>
#include <stdint.h>

struct source;

#define PLACES_PATIENCE_NS TIME_S(1)

/* places_open - open the stores among the places, without a request to them. Errors of a path
 * are kept for places_error. */
void places_open(struct repo *r);

/* places_error - the reason why a path cannot be a repository, as a copy; NULL if all paths are
 * valid. */
struct err *places_error(const struct repo *r);

/* places_cancel - make requests to stores end soon.
 * places_close - free the stores, after everything was unloaded. */
void places_cancel(struct repo *r);
void places_close(struct repo *r);

/* One look at all places. */
struct places_look {
    uint64_t listing[REPO_MAX_PATHS]; /* the listing that was begun, for each store */
};

/* places_begin - let the stores begin to list. Does not block. */
void places_begin(struct repo *r, struct places_look *ret);

/* places_is_cloud - true if a place is a store. */
bool places_is_cloud(const struct repo *r, size_t place);

/* places_names - the models in a place. For a store it blocks until the listing has arrived or
 * the time is over.
 * errors  the place cannot be read; UNAVAILABLE: the time is over */
struct err *places_names(struct repo *r, size_t place, const struct places_look *look,
                         time_ns until, struct local_names *ret);

/* places_stamp - the stamp of everything that a model has in a place, for polling; 0 = unknown.
 * Sends no request to a store. */
uint64_t places_stamp(const struct repo *r, size_t place, const char *model);

/* places_find - find the places that have a model, and where it can be read. Stores are asked
 * only if the model is in no directory on disk.
 * within      the places to look at
 * allowed     the places that it may be loaded from
 * known       use only the last listings of the stores; send no request
 * ret_places  all places that have it
 * ret_from    the place to load it from
 * ret         a reference
 * a store changed while it was read: try again
 * errors      NOT_FOUND, INVALID_ARG "model appears in two or more repositories", those of a
 *             store */
struct err *places_find(struct repo *r, const char *model, uint64_t within, uint64_t allowed,
                        bool known, uint64_t *ret_places, uint64_t *ret_from, struct source **ret,
                        bool *ret_changed);
