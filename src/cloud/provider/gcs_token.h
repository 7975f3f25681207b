#pragma once
/* Tokens for Google Cloud Storage. Private to provider/. */
#include "base/err.h"
#include "cloud/web/lease.h"

struct call_net;

struct gcs_token {
    struct call_net *net;
    char *file;    /* of a key; NULL = none is named */
    bool emulator; /* without a key file, requests go without a token */
    struct lease lease;
    bool said; /* that there are none; only who fetches looks at it */
};

/* gcs_token_init - file: what names the key, "" or NULL = the environment and the usual place.
 * Takes no request. */
void gcs_token_init(struct gcs_token *t, struct call_net *net, const char *file, bool emulator);
void gcs_token_fini(struct gcs_token *t);
