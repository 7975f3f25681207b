#pragma once
/* A model repository in a store: s3://, gs:// or as://. The last listing is known without asking
 * the store; models are downloaded into local directories.
 *
 * Functions that wait for the store say so; the others do not wait. Any thread except a loop's.
 * docs/internals/stores.md */
#include "base/err.h"
#include "os/clock.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cloud;
struct cloud_copy;

/* cloud_is - true if a repository's path is in a store. Pure. */
bool cloud_is(const char *path);

/* cloud_open - read the settings and open the cache; sends no request.
 * errors  INVALID_ARG: an invalid path; NOT_FOUND: the credential file has no credentials for
 *         it; INTERNAL: of the module or the cache */
struct err *cloud_open(const char *path, struct cloud **ret);

/* cloud_cancel - requests in flight end soon, later ones at once. */
void cloud_cancel(struct cloud *c);

/* cloud_free - free it; every copy was freed before. Waits for requests in flight: call
 * cloud_cancel first. NULL is fine. */
void cloud_free(struct cloud *c);

const char *cloud_path(const struct cloud *c);

/* cloud_look - begin to list the repository. Does not block. Returns the number for cloud_wait. */
uint64_t cloud_look(struct cloud *c);

/* cloud_wait - wait until that listing has ended, at most until a time.
 * errors  UNAVAILABLE: the time is over; else why the listing failed. What was known is kept. */
struct err *cloud_wait(struct cloud *c, uint64_t look, time_ns until);

/* cloud_names - the models of the last successful listing, sorted; none before the first. Does
 * not block.
 * ret      array and names are owned by the caller (mem_free)
 * returns  how many */
size_t cloud_names(struct cloud *c, char ***ret);

/* cloud_knows - true if the last listing has a model.
 * cloud_stamp - a number that changes with the model's objects; 0 = the listing has no such
 * model. Do not block. */
bool cloud_knows(struct cloud *c, const char *model);
uint64_t cloud_stamp(struct cloud *c, const char *model);

/* cloud_copy_new - make a directory with the model's files outside its version directories, and
 * an empty directory for each version. Blocks.
 * known   use the last listing if it has the model; else list again
 * errors  NOT_FOUND: the store has no such model; INVALID_ARG: an object's name would leave the
 *         directory; those of the store */
struct err *cloud_copy_new(struct cloud *c, const char *model, bool known, struct cloud_copy **ret);

/* cloud_copy_free - remove the directory. NULL is fine. */
void cloud_copy_free(struct cloud_copy *k);

/* cloud_copy_dir - the model's directory. */
const char *cloud_copy_dir(const struct cloud_copy *k);

/* cloud_copy_version - download the files of a version. Blocks.
 * errors  as cloud_copy_new */
struct err *cloud_copy_version(struct cloud_copy *k, int64_t version);

/* cloud_copy_stamp - the stamp of a version, or of another part in listing.h. */
uint64_t cloud_copy_stamp(const struct cloud_copy *k, int64_t part);

/* cloud_copy_changed - true if it failed because the store's objects differ from the listing: a
 * new copy may succeed. */
bool cloud_copy_changed(const struct cloud_copy *k);
