#pragma once
/* Which versions of a model are served: turns directory names into numbers, and picks among the
 * numbers. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct Inference__ModelVersionPolicy;

/* version_policy_parse_dir - the version number of a directory's name.
 * returns  false for a name that is not a version: not all digits, a leading zero (so also "0"),
 *          or above INT64_MAX
 * source   spec/model_repository.txt, Model Versions */
bool version_policy_parse_dir(const char *name, int64_t *ret);

/* version_policy_pick - choose among the versions that were found.
 * policy     NULL or without a choice = the latest one; latest { } = the latest one
 * versions   count different numbers in any order; on return the chosen ones are first,
 *            ascending; the rest is undefined
 * ret_count  how many were chosen; may be 0
 * missing    the first version that `specific` names and that was not found, else -1; may be
 *            NULL
 * source     spec/model_configuration.txt, Version Policy; X-38 */
void version_policy_pick(const struct Inference__ModelVersionPolicy *policy, int64_t *versions,
                         size_t count, size_t *ret_count, int64_t *missing);
