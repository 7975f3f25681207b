#pragma once
/* Versions on their way out: waited for, finalised and freed on a thread of their own. Private
 * to repo/. */
#include <stdbool.h>
#include <stdint.h>

struct instances;
struct repo;
struct repo_model;
struct repo_version;
struct serve_version;
struct tally;

/* retire_version - the version of an entry serves no longer; it must be unpublished before the
 * lock is released. Lock held.
 * shown  the entry shows it as unloading until it is gone; else the entry may be used for its
 *        successor at once */
void retire_version(struct repo *r, struct repo_model *m, struct repo_version *v, bool shown);

/* retire_tally - what the metrics of a version that is about to serve go on from: those of the
 * one of its number that is on its way out, else nothing. The caller's reference. Lock held. */
struct tally *retire_tally(struct repo *r, const struct repo_model *m, int64_t number);

/* retire_instances - the same for instances that a version which serves on has no use for. Lock
 * held.
 * left  taken over; {0} on return */
void retire_instances(struct repo *r, struct repo_model *m, struct serve_version *v,
                      struct instances *left);

/* retire_wait_instances - until those of a model are finalised, as who asked for fewer expects.
 * A request that runs on one of them may have asked, so what still executes is waited for no
 * longer than REPO_PARTING_NS. The caller works on the model. Lock not held. */
void retire_wait_instances(struct repo *r, const struct repo_model *m);

/* retire_say_left - as repo_say_left. Lock not held. */
void retire_say_left(struct repo *r);

/* retire_stop - wait until all are gone. Lock not held. */
void retire_stop(struct repo *r);
