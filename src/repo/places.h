#pragma once
/* The model repositories of a server, on the disk and in stores. A place is one of them, a bit
 * of table_model.places. Private to repo/.
 *
 * A store that does not answer holds up nothing else: what waits for one of several does so for
 * PLACES_PATIENCE_NS at most, and then goes by the last listing that came. */
#include "base/err.h"
#include "os/clock.h"
#include "repo/repo.h"
#include "repo/load/local.h"

#include <stdbool.h>
#include <stdint.h>

struct source;

#define PLACES_PATIENCE_NS TIME_S(1)

/* places_open - open the stores among them; no request. What is wrong with a path is kept for
 * places_error. */
void places_open(struct repo *r);

/* places_error - why a path cannot be a repository; NULL when all can. A copy. */
struct err *places_error(const struct repo *r);

/* places_cancel - requests to stores end soon. places_close - after everything was unloaded. */
void places_cancel(struct repo *r);
void places_close(struct repo *r);

/* One look at all of them. */
struct places_look {
    uint64_t listing[REPO_MAX_PATHS]; /* of the stores */
};

/* places_begin - stores begin to list. Does not block. */
void places_begin(struct repo *r, struct places_look *ret);

/* places_is_cloud - whether a place is a store. */
bool places_is_cloud(const struct repo *r, size_t place);

/* places_names - the models of a place. Blocks, for a store until its listing is done or the
 * time is over.
 * errors  it cannot be read; UNAVAILABLE: time is over */
struct err *places_names(struct repo *r, size_t place, const struct places_look *look,
                         time_ns until, struct local_names *ret);

/* places_stamp - of everything that a model has in a place, for the poll; 0 = it cannot be told.
 * Asks no store. */
uint64_t places_stamp(const struct repo *r, size_t place, const char *model);

/* places_find - which places have a model, and where it can be read. Asks stores only when no
 * directory on the disk is it.
 * within      the places where it may lie: others are not looked at
 * allowed     those of them that it may come from
 * known       by the last listing of the stores, without asking
 * ret_places  all that have it
 * ret_from    the one
 * ret         a reference
 * ret_changed a store changed while it was read: try again
 * errors      NOT_FOUND, INVALID_ARG "model appears in two or more repositories", what a store
 *             says */
struct err *places_find(struct repo *r, const char *model, uint64_t within, uint64_t allowed,
                        bool known, uint64_t *ret_places, uint64_t *ret_from, struct source **ret,
                        bool *ret_changed);
