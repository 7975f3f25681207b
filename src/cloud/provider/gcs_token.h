#pragma once
/* Tokens for Google Cloud Storage. Private to provider/. */
#include "base/err.h"
#include "cloud/web/lease.h"

struct call_net;

struct gcs_token {
    struct call_net *net;
    char *file;    /* path of a key file; NULL = none is named */
    bool emulator; /* without a key file, requests are sent without a token */
    struct lease lease;
    bool said; /* it was logged that there are none; used by the fetching thread only */
};

/* gcs_token_init - file: the key file, "" or NULL = from the environment and the default place.
 * Sends no request. */
void gcs_token_init(struct gcs_token *t, struct call_net *net, const char *file, bool emulator);
void gcs_token_fini(struct gcs_token *t);
