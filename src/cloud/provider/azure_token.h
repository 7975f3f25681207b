#pragma once
/* Tokens for Azure Blob Storage: of a managed identity, or of what the environment names.
 * Private to provider/. */
#include "base/err.h"
#include "cloud/web/lease.h"

struct call_net;

struct azure_token {
    struct call_net *net;
    char *client_id; /* of a user-assigned identity; "" = the machine's own */
    bool machine;    /* the managed identity alone; else the environment first */
    struct lease lease;
};

void azure_token_init(struct azure_token *t, struct call_net *net, const char *client_id,
                      bool machine);
void azure_token_fini(struct azure_token *t);
