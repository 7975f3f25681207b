#pragma once
/* Gets the objects of a model: from the cache, or from the store in pieces, several at a time.
 * Private to cloud/. */
#include "base/err.h"

#include <stdint.h>

struct cloud_copy;

/* fetch_part - make the files of one part of a model (listing_in) in the copy's directory.
 * Blocks until all exist or one has failed. Sets `changed` of the copy if the store's objects
 * differ from the listing. */
struct err *fetch_part(struct cloud_copy *k, int64_t part);
