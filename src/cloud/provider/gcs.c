/* Google Cloud Storage over its JSON interface.
 * source  spec/requirements.md MR-07; Cloud Storage JSON API: Objects: list, get */
#include "base/mem.h"
#include "codec/base64.h"
#include "cloud/provider/credential_file.h"
#include "cloud/provider/gcs_token.h"
#include "cloud/provider/kind.h"
#include "cloud/provider/listing.h"
#include "cloud/web/call.h"
#include "cloud/web/text.h"
#include "cloud/web/url.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

#define SCHEME   "gs://"
#define ENDPOINT "https://storage.googleapis.com"
#define FIELDS   "nextPageToken,items(name,size,generation,md5Hash,crc32c)"

struct gcs {
    char *endpoint;
    char *bucket;
    char *prefix;
    struct gcs_token token;
};

static void gcs_close(void *site)
{
    struct gcs *g = site;
    gcs_token_fini(&g->token);
    mem_free(g->endpoint);
    mem_free(g->bucket);
    mem_free(g->prefix);
    mem_free(g);
}

/* The emulator's "host:port" or address; NULL = none. The caller frees it. */
static char *emulator(void)
{
    const char *host = getenv("STORAGE_EMULATOR_HOST");
    struct strbuf sb = STRBUF_INIT;
    if (!host || !*host)
        return NULL;
    strbuf_printf(&sb, "%s%s", strstr(host, "://") ? "" : "http://", host);
    while (sb.len && sb.data[sb.len - 1] == '/')
        sb.data[--sb.len] = '\0';
    return strbuf_take(&sb);
}

static struct err *gcs_open(const char *path, struct call_net *net, void **ret)
{
    struct credential_entry entry;
    const char *rest = path + strlen(SCHEME);
    rest += strspn(rest, "/");
    size_t len = strcspn(rest, "/");
    if (!len)
        return err_new(STATUS_INVALID_ARG, "model repository '%s': no bucket name in the path",
                       path);
    struct err *e = credential_file_find("gs", path, &entry);
    if (e)
        return e;
    struct gcs *g = MEM_NEW(struct gcs);
    char *found = emulator();
    g->endpoint = found ? found : mem_strdup(ENDPOINT);
    g->bucket = mem_strndup(rest, len);
    g->prefix = url_prefix(rest + len);
    gcs_token_init(&g->token, net, entry.entry ? credential_file_text(&entry, NULL) : NULL,
                   found != NULL);
    credential_file_fini(&entry);
    *ret = g;
    return NULL;
}

static void put_pair(struct strbuf *sb, const char *name, const char *value)
{
    strbuf_printf(sb, "%c%s=", strchr(sb->data, '?') ? '&' : '?', name);
    url_escape(sb, value, strlen(value), false);
}

/* Writes endpoint/storage/v1/b/BUCKET/o, and the header with the token. */
static struct err *gcs_make(struct gcs *g, void *session, struct call_request *r)
{
    void *token = NULL;
    struct err *e = lease_get(&g->token.lease, session, &token);
    if (e)
        return e;
    strbuf_printf(&r->url, "%s/storage/v1/b/", g->endpoint);
    url_escape(&r->url, g->bucket, strlen(g->bucket), false);
    strbuf_puts(&r->url, "/o");
    if (token)
        call_header(r, "Authorization: Bearer %s", (const char *)token);
    mem_free(token);
    return NULL;
}

static struct err *gcs_list(void *site, void *session, const char *model, const char *page,
                            struct call_request *r)
{
    struct gcs *g = site;
    struct err *e = gcs_make(g, session, r);
    if (e)
        return e;
    struct strbuf prefix = STRBUF_INIT;
    strbuf_puts(&prefix, g->prefix);
    if (model)
        strbuf_printf(&prefix, "%s/", model);
    put_pair(&r->url, "prefix", strbuf_str(&prefix));
    put_pair(&r->url, "fields", FIELDS);
    put_pair(&r->url, "maxResults", "1000");
    if (page)
        put_pair(&r->url, "pageToken", page);
    strbuf_fini(&prefix);
    return NULL;
}

/* Writes a digest of `bytes` bytes, given as base64, as name:hexadecimal. */
static void gcs_put_digest(struct strbuf *sb, const char *name, yyjson_val *value, size_t bytes)
{
    const char *text = yyjson_get_str(value);
    unsigned char out[64];
    size_t len;
    if (!text || base64_room(strlen(text)) > sizeof(out) ||
        !base64_decode(text, strlen(text), BASE64_ONE_LINE, out, &len) || len != bytes)
        return;
    strbuf_printf(sb, "%s%s:", sb->len ? "," : "", name);
    text_hex(sb, out, len);
}

static struct err *gcs_take(const struct gcs *g, yyjson_val *item, struct listing *l)
{
    const char *name = yyjson_get_str(yyjson_obj_get(item, "name"));
    const char *size = yyjson_get_str(yyjson_obj_get(item, "size"));
    const char *generation = yyjson_get_str(yyjson_obj_get(item, "generation"));
    size_t name_len = yyjson_get_len(yyjson_obj_get(item, "name"));
    size_t prefix_len = strlen(g->prefix);
    if (!name || !size || !generation || strspn(size, "0123456789") != strlen(size) ||
        name_len < prefix_len || memcmp(name, g->prefix, prefix_len) != 0)
        return err_new(STATUS_INVALID_ARG, "a listing with an object that was not asked for");
    if (name_len == prefix_len)
        return NULL;
    struct strbuf digest = STRBUF_INIT;
    gcs_put_digest(&digest, "md5", yyjson_obj_get(item, "md5Hash"), 16);
    gcs_put_digest(&digest, "crc32c", yyjson_obj_get(item, "crc32c"), 4);
    struct err *e = listing_add(l, name + prefix_len, name_len - prefix_len,
                                strtoull(size, NULL, 10), generation, strbuf_str(&digest));
    strbuf_fini(&digest);
    return e;
}

static struct err *gcs_read(void *site, const char *body, size_t len, struct listing *l,
                            char **ret_next)
{
    const struct gcs *g = site;
    yyjson_doc *doc = yyjson_read(body, len, 0);
    yyjson_val *root = yyjson_doc_get_root(doc);
    yyjson_val *items = yyjson_obj_get(root, "items");
    const char *next = yyjson_get_str(yyjson_obj_get(root, "nextPageToken"));
    struct err *e = NULL;
    *ret_next = NULL;
    if (!yyjson_is_obj(root) || (items && !yyjson_is_arr(items)))
        e = err_new(STATUS_INVALID_ARG, "the answer is not a listing");
    yyjson_arr_iter it = yyjson_arr_iter_with(items);
    yyjson_val *item;
    while (!e && (item = yyjson_arr_iter_next(&it)))
        e = gcs_take(g, item, l);
    if (!e && next && *next)
        *ret_next = mem_strdup(next);
    yyjson_doc_free(doc);
    return e;
}

static struct err *gcs_get(void *site, void *session, const struct listing_object *o, uint64_t from,
                           uint64_t to, struct call_request *r)
{
    struct gcs *g = site;
    struct err *e = gcs_make(g, session, r);
    if (e)
        return e;
    struct strbuf name = STRBUF_INIT;
    strbuf_printf(&name, "%s%s", g->prefix, o->name);
    strbuf_putc(&r->url, '/');
    url_escape(&r->url, name.data, name.len, false);
    strbuf_fini(&name);
    put_pair(&r->url, "alt", "media");
    put_pair(&r->url, "generation", o->tag);
    call_header(r, "Range: bytes=%" PRIu64 "-%" PRIu64, from, to - 1);
    /* An object that was stored compressed is requested as it was stored, because the digests
     * are of that. */
    call_header(r, "Accept-Encoding: gzip");
    return NULL;
}

static bool gcs_renew(void *site, const struct call_answer *a)
{
    struct gcs *g = site;
    bool wants_token = a->status == 401 || (a->status == 403 && lease_is_none(&g->token.lease));
    return wants_token && lease_refused(&g->token.lease);
}

static bool gcs_digest_holds(const struct call_answer *a)
{
    (void)a;
    return true;
}

static void gcs_identify(void *site, const struct listing_object *o, struct strbuf *sb)
{
    const struct gcs *g = site;
    strbuf_printf(sb, "gs %s %s/%s%s %s", g->endpoint, g->bucket, g->prefix, o->name, o->tag);
}

const struct kind gcs_kind = {
    .scheme = SCHEME,
    .mount_env = "TRITON_GCS_MOUNT_DIRECTORY",
    .open = gcs_open,
    .close = gcs_close,
    .list = gcs_list,
    .read = gcs_read,
    .get = gcs_get,
    .renew = gcs_renew,
    .digest_holds = gcs_digest_holds,
    .identify = gcs_identify,
};
