/* source  Microsoft identity platform: OAuth 2.0 client credentials; managed identities */
#include "cloud/provider/azure_token.h"

#include "base/mem.h"
#include "base/strbuf.h"
#include "os/files/file.h"
#include "cloud/web/ask.h"
#include "cloud/web/call.h"
#include "cloud/web/token.h"
#include "cloud/web/url.h"

#include <stdlib.h>
#include <string.h>

#define MAX_FILE_BYTES ((size_t)64 << 10)
#define AUTHORITY      "https://login.microsoftonline.com"
#define MACHINE        "http://169.254.169.254/metadata/identity/oauth2/token"
#define RESOURCE       "https://storage.azure.com/"
#define ASSERTION_TYPE "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

static const char *azure_token_env(const char *name)
{
    const char *value = getenv(name);
    return value ? value : "";
}

static void azure_token_put_field(struct strbuf *sb, const char *name, const char *value)
{
    strbuf_printf(sb, "%s%s=", sb->len ? "&" : "", name);
    url_escape(sb, value, strlen(value), false);
}

static struct err *azure_token_run(struct call_net *net, void *session, const struct ask *a,
                                   struct lease_fresh *ret)
{
    char *answer = NULL;
    struct err *e = ask_run(net, session, a, &answer);
    if (!e)
        e = token_read(answer, ret);
    mem_free(answer);
    return e;
}

/* A registered application: by its secret, or by a token that its environment provides. */
static struct err *of_application(const struct azure_token *t, void *session,
                                  struct lease_fresh *ret)
{
    struct strbuf url = STRBUF_INIT;
    struct strbuf form = STRBUF_INIT;
    struct err *e = NULL;
    const char *authority = azure_token_env("AZURE_AUTHORITY_HOST");
    const char *id = *t->client_id ? t->client_id : azure_token_env("AZURE_CLIENT_ID");
    authority = *authority ? authority : AUTHORITY;
    size_t len = strlen(authority);
    strbuf_printf(&url, "%.*s/%s/oauth2/v2.0/token", (int)(len - (authority[len - 1] == '/')),
                  authority, azure_token_env("AZURE_TENANT_ID"));
    azure_token_put_field(&form, "grant_type", "client_credentials");
    azure_token_put_field(&form, "client_id", id);
    azure_token_put_field(&form, "scope", RESOURCE ".default");
    if (*azure_token_env("AZURE_CLIENT_SECRET")) {
        azure_token_put_field(&form, "client_secret", azure_token_env("AZURE_CLIENT_SECRET"));
    } else {
        char *assertion = NULL;
        size_t assertion_len;
        e = file_read(azure_token_env("AZURE_FEDERATED_TOKEN_FILE"), MAX_FILE_BYTES, &assertion,
                      &assertion_len);
        azure_token_put_field(&form, "client_assertion_type", ASSERTION_TYPE);
        if (!e)
            azure_token_put_field(&form, "client_assertion", assertion);
        mem_free(assertion);
    }
    const struct ask a = {.method = "POST",
                          .url = strbuf_str(&url),
                          .headers = {"Content-Type: application/x-www-form-urlencoded"},
                          .body = strbuf_str(&form)};
    if (!e)
        e = azure_token_run(t->net, session, &a, ret);
    strbuf_fini(&form);
    strbuf_fini(&url);
    return e;
}

static struct err *azure_token_of_machine(const struct azure_token *t, void *session,
                                          struct lease_fresh *ret)
{
    struct strbuf url = STRBUF_INIT;
    struct strbuf secret = STRBUF_INIT;
    bool service = *azure_token_env("IDENTITY_ENDPOINT") != '\0'; /* on Azure App Service */
    strbuf_printf(&url, "%s?api-version=%s",
                  service ? azure_token_env("IDENTITY_ENDPOINT") : MACHINE,
                  service ? "2019-08-01" : "2018-02-01");
    strbuf_puts(&url, "&resource=");
    url_escape(&url, RESOURCE, strlen(RESOURCE), false);
    if (*t->client_id) {
        strbuf_puts(&url, "&client_id=");
        url_escape(&url, t->client_id, strlen(t->client_id), false);
    }
    strbuf_printf(&secret, "X-IDENTITY-HEADER: %s", azure_token_env("IDENTITY_HEADER"));
    const struct ask a = {.method = "GET",
                          .url = strbuf_str(&url),
                          .headers = {"Metadata: true", service ? strbuf_str(&secret) : NULL},
                          .direct = true};
    struct err *e = azure_token_run(t->net, session, &a, ret);
    strbuf_fini(&secret);
    strbuf_fini(&url);
    return err_wrap(e, "managed identity");
}

static struct err *azure_token_fetch(void *owner, void *session, struct lease_fresh *ret)
{
    const struct azure_token *t = owner;
    bool named =
        *azure_token_env("AZURE_TENANT_ID") &&
        (*azure_token_env("AZURE_CLIENT_SECRET") || *azure_token_env("AZURE_FEDERATED_TOKEN_FILE"));
    if (!t->machine && named)
        return of_application(t, session, ret);
    return azure_token_of_machine(t, session, ret);
}

void azure_token_init(struct azure_token *t, struct call_net *net, const char *client_id,
                      bool machine)
{
    *t = (struct azure_token){.net = net, .client_id = mem_strdup(client_id), .machine = machine};
    static const struct lease_kind kind = {
        .fetch = azure_token_fetch, .copy = token_copy, .drop = mem_free};
    lease_init(&t->lease, &kind, t);
}

void azure_token_fini(struct azure_token *t)
{
    lease_fini(&t->lease);
    mem_free(t->client_id);
}
