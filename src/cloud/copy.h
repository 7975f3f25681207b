#pragma once
/* The copies of cloud.h, which cloud_copy.c makes: what fetching needs of one. Private to
 * cloud/. */
#include "cloud/cloud_priv.h"

struct cloud_copy {
    struct cloud *c;
    char *model;
    struct cloud_view *view;
    size_t first; /* the model's objects in the listing */
    size_t count;
    char *dir;
    uint64_t bytes; /* of the parts that were downloaded */
    bool changed;
};
