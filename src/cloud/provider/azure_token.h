#pragma once
/* Tokens for Azure Blob Storage: of a managed identity, or from the settings in the environment.
 * Private to provider/. */
#include "base/err.h"
#include "cloud/web/lease.h"

struct call_net;

struct azure_token {
    struct call_net *net;
    char *client_id; /* of a user-assigned identity; "" = the machine's identity */
    bool machine;    /* use only the managed identity; else the environment first */
    struct lease lease;
};

void azure_token_init(struct azure_token *t, struct call_net *net, const char *client_id,
                      bool machine);
void azure_token_fini(struct azure_token *t);
