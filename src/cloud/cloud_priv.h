#pragma once
/* What the files of cloud/ share. */
#include "cloud/cloud.h"
#include "os/crew.h"
#include "cloud/provider/kind.h"
#include "cloud/provider/listing.h"
#include "cloud/stash.h"
#include "cloud/web/call.h"

/* A listing that several look at. */
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
    struct crew *control; /* listings */
    struct crew *data;    /* contents */

    struct mutex lock; /* rank LEAF; guards what follows */
    struct mutex_cond changed;
    uint64_t asked;  /* looks that were asked for */
    uint64_t done;   /* the last of them that is over */
    uint64_t serves; /* up to which the one under way counts */
    bool looking;
    struct crew_job job; /* of the look under way */
    struct cloud_view *view;
    struct err *trouble; /* of the last look */
};

struct cloud_view *cloud_view_ref(struct cloud_view *v);
void cloud_view_unref(struct cloud_view *v);

/* cloud_list - list a model, or (NULL) the repository. On a crew's thread. ret: a reference. */
struct err *cloud_list(struct cloud *c, void *session, const char *model, struct cloud_view **ret);
