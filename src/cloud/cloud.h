#pragma once
/* A model repository in a store: s3://, gs:// or as://. Its listing is known without asking; its
 * models become local directories.
 *
 * What waits for the store says so; nothing else does. Any thread but a loop's.
 * docs/internals/stores.md */
#include "base/err.h"
#include "os/clock.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cloud;
struct cloud_copy;

/* cloud_is - whether a repository's path leads to a store. Pure. */
bool cloud_is(const char *path);

/* cloud_open - read the settings and open the cache; no request is made.
 * errors  INVALID_ARG: a path that cannot be read; NOT_FOUND: no credentials for it in the file
 *         that names them; INTERNAL: the module or the cache */
struct err *cloud_open(const char *path, struct cloud **ret);

/* cloud_cancel - requests under way end soon, later ones at once. */
void cloud_cancel(struct cloud *c);

/* cloud_free - every copy was freed before. Waits for requests under way: cloud_cancel first.
 * NULL is fine. */
void cloud_free(struct cloud *c);

const char *cloud_path(const struct cloud *c);

/* cloud_look - begin to list the repository. Does not block. Returns what cloud_wait takes. */
uint64_t cloud_look(struct cloud *c);

/* cloud_wait - until that listing is done, or a time.
 * errors  UNAVAILABLE: time is up; else why it could not be listed. What was known stays. */
struct err *cloud_wait(struct cloud *c, uint64_t look, time_ns until);

/* cloud_names - the models of the last listing that came, sorted; none before the first. Does
 * not block.
 * ret      the caller's, each and all (mem_free)
 * returns  how many */
size_t cloud_names(struct cloud *c, char ***ret);

/* cloud_knows, cloud_stamp - of the last listing: whether it has a model, and a number that
 * changes with its objects; 0 = it has none. Do not block. */
bool cloud_knows(struct cloud *c, const char *model);
uint64_t cloud_stamp(struct cloud *c, const char *model);

/* cloud_copy_new - a directory with what lies beside a model's versions, and one for each
 * version, empty.
 * known   by the last listing, where it has the model; else it is listed anew. Blocks.
 * errors  NOT_FOUND: the store has no such model; INVALID_ARG: an object whose name would leave
 *         the directory; what the store said */
struct err *cloud_copy_new(struct cloud *c, const char *model, bool known, struct cloud_copy **ret);

/* cloud_copy_free - removes the directory. NULL is fine. */
void cloud_copy_free(struct cloud_copy *k);

/* cloud_copy_dir - the model's directory. */
const char *cloud_copy_dir(const struct cloud_copy *k);

/* cloud_copy_version - bring the files of a version. Blocks.
 * errors  as cloud_copy_new */
struct err *cloud_copy_version(struct cloud_copy *k, int64_t version);

/* cloud_copy_stamp - of one version, or another part that listing.h names. */
uint64_t cloud_copy_stamp(const struct cloud_copy *k, int64_t part);

/* cloud_copy_changed - whether it failed since the store's objects are no longer those of the
 * listing: a new copy may succeed. */
bool cloud_copy_changed(const struct cloud_copy *k);
