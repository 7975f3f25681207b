#pragma once
/* Bringing the objects of a model: out of the cache, or from the store in pieces, several at a
 * time. Private to cloud/. */
#include "base/err.h"

#include <stdint.h>

struct cloud_copy;

/* fetch_part - make the files of one part of a model (listing_in) in the copy's directory.
 * Blocks until all are there, or one cannot be had; sets `changed` of the copy when the store no
 * longer has what the listing says. */
struct err *fetch_part(struct cloud_copy *k, int64_t part);
