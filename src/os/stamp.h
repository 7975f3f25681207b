#pragma once
/* A number that changes when files change: of the names, kinds, sizes, inodes and times of everything below a directory. Contents
 * are not read. Blocks; not for loop threads. */
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

/* stamp_directory - links are followed; names that begin with a dot, and what cannot be looked at, count by their name alone.
 * skip    entries of the directory itself to leave out, by name; NULL = none
 * errors  NOT_FOUND when it is not there */
struct err *stamp_directory(const char *path, bool (*skip)(const char *name), uint64_t *ret);
