#pragma once
/* Which versions of a model are served: from names of directories to numbers, and from numbers to
 * those that the policy picks. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct Inference__ModelVersionPolicy;

/* version_policy_parse_dir - the version number of a directory's name.
 * returns  false for a name that is no version: not all digits, a zero in front (so 0 itself), or
 *          over INT64_MAX
 * source   spec/model_repository.txt, Model Versions */
bool version_policy_parse_dir(const char *name, int64_t *ret);

/* version_policy_pick - choose among the versions that were found.
 * policy     NULL or without a choice = the latest one; latest { } = the latest one
 * versions   count different numbers in any order; on return the chosen ones stand first,
 *            ascending, the rest is not meaningful
 * ret_count  how many were chosen; may be 0
 * missing    receives the first version that `specific` asks for and that was not found, else -1;
 *            may be NULL
 * source     spec/model_configuration.txt, Version Policy; X-38 */
void version_policy_pick(const struct Inference__ModelVersionPolicy *policy, int64_t *versions,
                         size_t count, size_t *ret_count, int64_t *missing);
