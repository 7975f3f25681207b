#pragma once
/* Versions that no longer serve: a thread of its own waits for their requests, finalises and
 * frees them. Private to repo/. */
#include <stdbool.h>
#include <stdint.h>

struct instances;
struct repo;
struct repo_model;
struct repo_version;
struct serve_version;
struct tally;

/* retire_version - the version of an entry no longer serves. It must be unpublished before the
 * lock is released. Lock held.
 * shown  the entry shows it as unloading until it is freed; else the entry can be used for its
 *        successor at once */
void retire_version(struct repo *r, struct repo_model *m, struct repo_version *v, bool shown);

/* retire_tally - the tally that a version continues when it begins to serve: that of a version
 * with the same number that is being retired; NULL if there is none. The caller gets a
 * reference. Lock held. */
struct tally *retire_tally(struct repo *r, const struct repo_model *m, int64_t number);

/* retire_instances - retire instances that a serving version no longer needs. Lock held.
 * left  taken over; {0} on return */
void retire_instances(struct repo *r, struct repo_model *m, struct serve_version *v,
                      struct instances *left);

/* retire_wait_instances - wait until removed instances of a model are finalised, because a
 * client that asked for fewer instances expects that. The asking request may itself run on one
 * of them, so instances that still execute are waited for at most REPO_PARTING_NS. The caller
 * works on the model. Lock not held. */
void retire_wait_instances(struct repo *r, const struct repo_model *m);

/* retire_say_left - the work of repo_say_left. Lock not held. */
void retire_say_left(struct repo *r);

/* retire_stop - wait until all retired versions are freed. Lock not held. */
void retire_stop(struct repo *r);
