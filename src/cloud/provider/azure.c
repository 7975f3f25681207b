/* Azure Blob Storage: as://ACCOUNT/CONTAINER/PATH,
 * as://[http[s]://]HOST:PORT/ACCOUNT/CONTAINER/PATH.
 * source  Azure Storage: List Blobs, Get Blob; spec/requirements.md MR-03 */
#include "base/mem.h"
#include "codec/base64.h"
#include "cloud/provider/azure_key.h"
#include "cloud/provider/azure_list.h"
#include "cloud/provider/azure_token.h"
#include "cloud/provider/credential_file.h"
#include "cloud/provider/kind.h"
#include "cloud/provider/listing.h"
#include "cloud/web/call.h"
#include "cloud/web/url.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SCHEME  "as://"
#define DOMAIN  ".blob.core.windows.net"
#define VERSION "2021-08-06"

struct azure {
    struct call_net *net;
    char *account;
    char *base; /* "https://ACCOUNT.blob.core.windows.net", or HOST/ACCOUNT */
    char *container;
    char *prefix;
    unsigned char *key; /* NULL = no key */
    size_t key_len;
    bool with_token;
    struct azure_token token;
};

static void azure_close(void *site)
{
    struct azure *a = site;
    azure_token_fini(&a->token);
    mem_free(a->account);
    mem_free(a->base);
    mem_free(a->container);
    mem_free(a->prefix);
    mem_free(a->key);
    mem_free(a);
}

static const char *azure_env(const char *name)
{
    const char *value = getenv(name);
    return value ? value : "";
}

/* The value of NAME in a connection string; "" if there is none. The caller frees it. */
static char *connection_value(const char *name)
{
    const char *at = azure_env("AZURE_STORAGE_CONNECTION_STRING");
    size_t name_len = strlen(name);
    while (*at) {
        size_t len = strcspn(at, ";");
        if (len > name_len && strncmp(at, name, name_len) == 0 && at[name_len] == '=')
            return mem_strndup(at + name_len + 1, len - name_len - 1);
        at += len + (at[len] == ';');
    }
    return mem_strdup("");
}

/* Finds account, address and container from the path and the settings. */
static struct err *azure_place(struct azure *a, const char *path, const char *account)
{
    struct url_parts parts;
    struct err *e = url_parse(path + strlen(SCHEME), path, &parts);
    if (e)
        return e;
    size_t len = strlen(parts.bucket);
    size_t domain = strlen(DOMAIN);
    if (!parts.endpoint && len > domain && strcmp(parts.bucket + len - domain, DOMAIN) == 0)
        len -= domain;
    a->account = *account ? mem_strdup(account) : mem_strndup(parts.bucket, len);
    char *endpoint = connection_value("BlobEndpoint");
    struct strbuf base = STRBUF_INIT;
    if (parts.endpoint)
        strbuf_printf(&base, "%s/%s", parts.endpoint, a->account);
    else if (*endpoint)
        strbuf_puts(&base, endpoint);
    else
        strbuf_printf(&base, "https://%s" DOMAIN, a->account);
    while (base.len && base.data[base.len - 1] == '/')
        base.data[--base.len] = '\0';
    a->base = strbuf_take(&base);
    mem_free(endpoint);
    size_t container = strcspn(parts.prefix, "/");
    a->container = mem_strndup(parts.prefix, container);
    a->prefix = mem_strdup(parts.prefix + container + (container ? 1 : 0));
    url_parts_fini(&parts);
    return container ? NULL
                     : err_new(STATUS_INVALID_ARG,
                               "model repository '%s': expected as://ACCOUNT/CONTAINER/PATH", path);
}

static struct err *take_key(struct azure *a, const char *text)
{
    if (!*text)
        return NULL;
    a->key = mem_alloc(base64_room(strlen(text)));
    if (base64_decode(text, strlen(text), BASE64_ONE_LINE, a->key, &a->key_len))
        return NULL;
    return err_new(STATUS_INVALID_ARG, "the key of the storage account '%s' is no base64",
                   a->account);
}

static struct err *azure_open(const char *path, struct call_net *net, void **ret)
{
    struct credential_entry entry;
    struct err *e = credential_file_find("as", path, &entry);
    if (e)
        return e;
    struct azure *a = MEM_NEW(struct azure);
    const struct credential_entry *in = entry.entry ? &entry : NULL;
    char *account = connection_value("AccountName");
    char *key = connection_value("AccountKey");
    const char *type =
        in ? credential_file_text(in, "auth_type") : azure_env("AZURE_STORAGE_AUTH_TYPE");
    const char *id =
        in ? credential_file_text(in, "client_id") : azure_env("AZURE_STORAGE_CLIENT_ID");
    const char *named =
        in ? credential_file_text(in, "account_str") : azure_env("AZURE_STORAGE_ACCOUNT");
    const char *secret =
        in ? credential_file_text(in, "account_key") : azure_env("AZURE_STORAGE_KEY");
    a->net = net;
    a->with_token = strcmp(type, "managed_identity") == 0 || strcmp(type, "default") == 0;
    azure_token_init(&a->token, net, id, strcmp(type, "managed_identity") == 0);
    e = azure_place(a, path, *named || in ? named : account);
    if (!e && !a->with_token)
        e = take_key(a, *secret || in ? secret : key);
    mem_free(key);
    mem_free(account);
    credential_file_fini(&entry);
    if (e)
        azure_close(a);
    else
        *ret = a;
    return e;
}

static void put_date(char *ret, size_t cap)
{
    static const char days[] = "SunMonTueWedThuFriSat";
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    time_t now = (time_t)(clock_wall_ns() / 1000000000u);
    struct tm tm;
    gmtime_r(&now, &tm);
    snprintf(ret, cap, "%.3s, %02d %.3s %04d %02d:%02d:%02d GMT", days + 3 * tm.tm_wday, tm.tm_mday,
             months + 3 * tm.tm_mon, tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec);
}

/* Signs the request r by a key or a token. v: its parts, without account and date. */
static struct err *azure_sign(struct azure *a, void *session, struct azure_key_request *v,
                              struct call_request *r)
{
    char date[64];
    void *token = NULL;
    put_date(date, sizeof(date));
    const struct azure_key_pair headers[] = {{"x-ms-date", date}, {"x-ms-version", VERSION}};
    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
        call_header(r, "%s: %s", headers[i].name, headers[i].value);
    if (a->with_token) {
        struct err *e = lease_get(&a->token.lease, session, &token);
        if (e)
            return e;
        call_header(r, "Authorization: Bearer %s", token ? (const char *)token : "");
        mem_free(token);
    } else if (a->key) {
        struct strbuf authorization = STRBUF_INIT;
        v->account = a->account;
        v->headers = headers;
        v->header_count = sizeof(headers) / sizeof(headers[0]);
        azure_key_authorization(a->net->abi, v, a->key, a->key_len, &authorization);
        call_header(r, "Authorization: %s", strbuf_str(&authorization));
        strbuf_fini(&authorization);
    }
    return NULL;
}

/* The path of a URL, from the slash after the host. */
static const char *azure_path(const char *url)
{
    const char *host = strstr(url, "://");
    const char *path = host ? strchr(host + 3, '/') : NULL;
    return path ? path : "/";
}

static struct err *azure_list(void *site, void *session, const char *model, const char *page,
                              struct call_request *r)
{
    struct azure *a = site;
    struct strbuf prefix = STRBUF_INIT;
    struct azure_key_pair query[5]; /* by name */
    size_t count = 0;
    strbuf_puts(&prefix, a->prefix);
    if (model)
        strbuf_printf(&prefix, "%s/", model);
    query[count++] = (struct azure_key_pair){"comp", "list"};
    if (page)
        query[count++] = (struct azure_key_pair){"marker", page};
    query[count++] = (struct azure_key_pair){"maxresults", "1000"};
    query[count++] = (struct azure_key_pair){"prefix", strbuf_str(&prefix)};
    query[count++] = (struct azure_key_pair){"restype", "container"};
    strbuf_printf(&r->url, "%s/", a->base);
    url_escape(&r->url, a->container, strlen(a->container), false);
    char *path = mem_strdup(azure_path(strbuf_str(&r->url)));
    for (size_t i = 0; i < count; i++) {
        strbuf_printf(&r->url, "%c%s=", i ? '&' : '?', query[i].name);
        url_escape(&r->url, query[i].value, strlen(query[i].value), false);
    }
    struct azure_key_request v = {
        .path = path, .query = query, .query_count = count, .if_match = "", .range = ""};
    struct err *e = azure_sign(a, session, &v, r);
    mem_free(path);
    strbuf_fini(&prefix);
    return e;
}

static struct err *azure_read(void *site, const char *body, size_t len, struct listing *l,
                              char **ret_next)
{
    const struct azure *a = site;
    return azure_list_read(a->net->abi, body, len, a->prefix, l, ret_next);
}

static struct err *azure_get(void *site, void *session, const struct listing_object *o,
                             uint64_t from, uint64_t to, struct call_request *r)
{
    struct azure *a = site;
    struct strbuf name = STRBUF_INIT;
    char range[64];
    char tag[256];
    snprintf(range, sizeof(range), "bytes=%" PRIu64 "-%" PRIu64, from, to - 1);
    snprintf(tag, sizeof(tag), o->tag[0] == '"' ? "%s" : "\"%s\"", o->tag);
    strbuf_printf(&name, "%s%s", a->prefix, o->name);
    strbuf_printf(&r->url, "%s/", a->base);
    url_escape(&r->url, a->container, strlen(a->container), false);
    strbuf_putc(&r->url, '/');
    url_escape(&r->url, name.data, name.len, true);
    strbuf_fini(&name);
    bool match = o->tag[0] != '\0';
    call_header(r, "Range: %s", range);
    if (match)
        call_header(r, "If-Match: %s", tag);
    struct azure_key_request v = {
        .path = azure_path(strbuf_str(&r->url)), .if_match = match ? tag : "", .range = range};
    return azure_sign(a, session, &v, r);
}

static bool azure_renew(void *site, const struct call_answer *a)
{
    struct azure *s = site;
    return s->with_token && a->status == 401 && lease_refused(&s->token.lease);
}

static bool azure_digest_holds(const struct call_answer *a)
{
    (void)a;
    return true;
}

static void azure_identify(void *site, const struct listing_object *o, struct strbuf *sb)
{
    const struct azure *a = site;
    strbuf_printf(sb, "as %s %s/%s%s %s", a->base, a->container, a->prefix, o->name, o->tag);
}

const struct kind azure_kind = {
    .scheme = SCHEME,
    .mount_env = "TRITON_AZURE_MOUNT_DIRECTORY",
    .open = azure_open,
    .close = azure_close,
    .list = azure_list,
    .read = azure_read,
    .get = azure_get,
    .renew = azure_renew,
    .digest_holds = azure_digest_holds,
    .identify = azure_identify,
};
