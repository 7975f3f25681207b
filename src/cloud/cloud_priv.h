#pragma once
/* Types shared by the files of cloud/. */
#include "cloud/cloud.h"
#include "os/crew.h"
#include "cloud/provider/kind.h"
#include "cloud/provider/listing.h"
#include "cloud/stash.h"
#include "cloud/web/call.h"

/* A listing with several users. */
struct cloud_view {
    atomic_uint refs; /* the last unref acquires what the others released */
    struct listing listing;
};

struct cloud {
    char *path;
    const struct kind *kind;
    void *site;
    struct call_net net;
    struct stash *stash;
    struct crew *control; /* threads for listings */
    struct crew *data;    /* threads for contents */

    struct mutex lock; /* rank LEAF; guards the fields below */
    struct mutex_cond changed;
    uint64_t asked;  /* number of looks that were requested */
    uint64_t done;   /* number of the last look that has ended */
    uint64_t serves; /* the look in progress counts for requests up to this number */
    bool looking;
    struct crew_job job; /* of the look in progress */
    struct cloud_view *view;
    struct err *trouble; /* the error of the last look */
};

struct cloud_view *cloud_view_ref(struct cloud_view *v);
void cloud_view_unref(struct cloud_view *v);

/* cloud_list - list a model, or the repository (NULL). Called on a crew's thread. ret: a
 * reference. */
struct err *cloud_list(struct cloud *c, void *session, const char *model, struct cloud_view **ret);
