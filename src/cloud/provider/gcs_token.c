/* Tokens from a service account's key, a user's refresh token, or the metadata server.
 * source  OAuth 2.0 for server to server applications; RFC 7523 */
#include "cloud/provider/gcs_token.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "os/files/file.h"
#include "cloud/web/ask.h"
#include "cloud/web/call.h"
#include "cloud/web/cloud_abi.h"
#include "cloud/web/text.h"
#include "cloud/web/token.h"
#include "cloud/web/url.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

#define MAX_FILE_BYTES ((size_t)256 << 10)
#define TOKEN_URI      "https://oauth2.googleapis.com/token"
#define SCOPE          "https://www.googleapis.com/auth/devstorage.read_only"
#define METADATA_HOST  "169.254.169.254"
#define METADATA_PATH  "/computeMetadata/v1/instance/service-accounts/default/token"
#define LIFE_SECS      UINT64_C(3600)
#define MAX_SIGNATURE  1024u

static const char *gcs_token_text(yyjson_val *root, const char *name)
{
    const char *text = yyjson_get_str(yyjson_obj_get(root, name));
    return text ? text : "";
}

/* Appends name=value, escaped. */
static void gcs_token_put_field(struct strbuf *sb, const char *name, const char *value)
{
    strbuf_printf(sb, "%s%s=", sb->len ? "&" : "", name);
    url_escape(sb, value, strlen(value), false);
}

static struct err *gcs_token_post(struct call_net *net, void *session, const char *url,
                                  const char *form, struct lease_fresh *ret)
{
    char *answer = NULL;
    const struct ask a = {.method = "POST",
                          .url = url,
                          .headers = {"Content-Type: application/x-www-form-urlencoded"},
                          .body = form};
    struct err *e = ask_run(net, session, &a, &answer);
    if (!e)
        e = token_read(answer, ret);
    mem_free(answer);
    return e;
}

/* Appends a JSON text. It is written by the JSON library, because values of key files may
 * contain any character. */
static void gcs_token_put_json(struct strbuf *sb, yyjson_mut_doc *doc)
{
    char *text = yyjson_mut_write(doc, 0, NULL);
    if (text)
        text_base64(sb, text, strlen(text), true);
    mem_free(text);
}

/* Appends header.claims, in base64. */
static void put_claims(struct strbuf *sb, yyjson_val *key, const char *audience)
{
    uint64_t now = clock_wall_ns() / 1000000000u;
    yyjson_mut_doc *head = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *h = yyjson_mut_obj(head);
    yyjson_mut_doc_set_root(head, h);
    yyjson_mut_obj_add_str(head, h, "alg", "RS256");
    yyjson_mut_obj_add_str(head, h, "typ", "JWT");
    yyjson_mut_obj_add_str(head, h, "kid", gcs_token_text(key, "private_key_id"));
    gcs_token_put_json(sb, head);
    yyjson_mut_doc_free(head);
    strbuf_putc(sb, '.');
    yyjson_mut_doc *claims = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *c = yyjson_mut_obj(claims);
    yyjson_mut_doc_set_root(claims, c);
    yyjson_mut_obj_add_str(claims, c, "iss", gcs_token_text(key, "client_email"));
    yyjson_mut_obj_add_str(claims, c, "scope", SCOPE);
    yyjson_mut_obj_add_str(claims, c, "aud", audience);
    yyjson_mut_obj_add_uint(claims, c, "iat", now);
    yyjson_mut_obj_add_uint(claims, c, "exp", now + LIFE_SECS);
    gcs_token_put_json(sb, claims);
    yyjson_mut_doc_free(claims);
}

static struct err *of_service(struct call_net *net, void *session, yyjson_val *key,
                              struct lease_fresh *ret)
{
    const char *uri = gcs_token_text(key, "token_uri");
    const char *pem = gcs_token_text(key, "private_key");
    unsigned char signature[MAX_SIGNATURE];
    struct strbuf jwt = STRBUF_INIT;
    struct strbuf form = STRBUF_INIT;
    uri = *uri ? uri : TOKEN_URI;
    put_claims(&jwt, key, uri);
    size_t n =
        net->abi->sign_rs256(pem, strlen(pem), jwt.data, jwt.len, signature, sizeof(signature));
    struct err *e = NULL;
    if (n) {
        strbuf_putc(&jwt, '.');
        text_base64(&jwt, signature, n, true);
        gcs_token_put_field(&form, "grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer");
        gcs_token_put_field(&form, "assertion", strbuf_str(&jwt));
        e = gcs_token_post(net, session, uri, strbuf_str(&form), ret);
    } else {
        e = err_new(STATUS_INVALID_ARG, "its private_key is no RSA key in PEM");
    }
    strbuf_fini(&form);
    strbuf_fini(&jwt);
    return e;
}

static struct err *of_user(struct call_net *net, void *session, yyjson_val *key,
                           struct lease_fresh *ret)
{
    const char *uri = gcs_token_text(key, "token_uri");
    struct strbuf form = STRBUF_INIT;
    gcs_token_put_field(&form, "grant_type", "refresh_token");
    gcs_token_put_field(&form, "client_id", gcs_token_text(key, "client_id"));
    gcs_token_put_field(&form, "client_secret", gcs_token_text(key, "client_secret"));
    gcs_token_put_field(&form, "refresh_token", gcs_token_text(key, "refresh_token"));
    struct err *e = gcs_token_post(net, session, *uri ? uri : TOKEN_URI, strbuf_str(&form), ret);
    strbuf_fini(&form);
    return e;
}

static struct err *of_file(const struct gcs_token *t, void *session, struct lease_fresh *ret)
{
    char *text;
    size_t len;
    struct err *e = file_read(t->file, MAX_FILE_BYTES, &text, &len);
    if (e)
        return err_wrap(e, "the key for Google Cloud Storage");
    yyjson_doc *doc = yyjson_read(text, len, 0);
    yyjson_val *root = yyjson_doc_get_root(doc);
    const char *type = gcs_token_text(root, "type");
    if (strcmp(type, "service_account") == 0)
        e = of_service(t->net, session, root, ret);
    else if (strcmp(type, "authorized_user") == 0)
        e = of_user(t->net, session, root, ret);
    else
        e = err_new(STATUS_INVALID_ARG,
                    "expected a key of type service_account or authorized_user, found '%s'", type);
    yyjson_doc_free(doc);
    mem_free(text);
    return err_wrap(e, "the key file '%s'", t->file);
}

/* Asks the metadata server. If there is none, requests are sent without a token. */
static struct err *gcs_token_of_machine(struct gcs_token *t, void *session, struct lease_fresh *ret)
{
    const char *host = getenv("GCE_METADATA_HOST");
    struct strbuf url = STRBUF_INIT;
    char *answer = NULL;
    strbuf_printf(&url, "http://%s" METADATA_PATH, host && *host ? host : METADATA_HOST);
    const struct ask a = {.method = "GET",
                          .url = strbuf_str(&url),
                          .headers = {"Metadata-Flavor: Google"},
                          .direct = true,
                          .maybe = true};
    struct err *e = ask_run(t->net, session, &a, &answer);
    if (!e)
        e = token_read(answer, ret);
    mem_free(answer);
    strbuf_fini(&url);
    ret->none = e && err_code(e) == STATUS_NOT_FOUND;
    if (ret->none && !t->said)
        LOG_WARN("no credentials for Google Cloud Storage were found: requests go without (%s)",
                 err_message(e));
    t->said = ret->none;
    if (!ret->none)
        return err_wrap(e, "the machine's service account");
    err_free(e);
    return NULL;
}

static struct err *gcs_token_fetch(void *owner, void *session, struct lease_fresh *ret)
{
    struct gcs_token *t = owner;
    if (t->file)
        return of_file(t, session, ret);
    if (t->emulator && !getenv("GCE_METADATA_HOST"))
        return NULL;
    return gcs_token_of_machine(t, session, ret);
}

void gcs_token_init(struct gcs_token *t, struct call_net *net, const char *file, bool emulator)
{
    const char *named = file && *file ? file : getenv("GOOGLE_APPLICATION_CREDENTIALS");
    const char *home = getenv("HOME");
    *t = (struct gcs_token){.net = net, .emulator = emulator};
    if (named && *named) {
        t->file = mem_strdup(named);
    } else if (home) {
        struct strbuf usual = STRBUF_INIT;
        strbuf_printf(&usual, "%s/.config/gcloud/application_default_credentials.json", home);
        if (file_exists(strbuf_str(&usual)))
            t->file = strbuf_take(&usual);
        strbuf_fini(&usual);
    }
    static const struct lease_kind kind = {
        .fetch = gcs_token_fetch, .copy = token_copy, .drop = mem_free};
    lease_init(&t->lease, &kind, t);
}

void gcs_token_fini(struct gcs_token *t)
{
    lease_fini(&t->lease);
    mem_free(t->file);
}
