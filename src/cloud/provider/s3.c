/* Amazon S3, and other stores with its protocol.
 * source  spec/requirements.md MR-08 to MR-12, X-01; Amazon S3 API Reference: ListObjectsV2,
 *         GetObject */
#include "base/mem.h"
#include "cloud/provider/aws.h"
#include "cloud/provider/credential_file.h"
#include "cloud/provider/kind.h"
#include "cloud/provider/s3_list.h"
#include "cloud/provider/sigv4.h"
#include "cloud/provider/listing.h"
#include "cloud/web/call.h"
#include "cloud/web/url.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SCHEME    "s3://"
#define MAX_PAIRS 8u

#define MAX_REGION 64u /* characters, with the NUL */

/* The SHA-256 of no bytes. */
#define EMPTY_SHA256 "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

struct s3 {
    struct call_net *net;
    struct url_parts where;
    struct aws aws;
    bool own_endpoint; /* an endpoint other than the provider's */
    bool virtual_host; /* the bucket is a part of the host name */
    struct mutex lock; /* rank LEAF; guards the fields below */
    char *region;      /* of the bucket, if known */
    int64_t skew_secs; /* how far the store's clock is ahead */
};

static void s3_close(void *site)
{
    struct s3 *s = site;
    aws_fini(&s->aws);
    url_parts_fini(&s->where);
    mutex_fini(&s->lock);
    mem_free(s->region);
    mem_free(s);
}

/* An endpoint's address without a trailing slash. */
static char *without_slash(const char *text)
{
    size_t len = strlen(text);
    while (len && text[len - 1] == '/')
        len--;
    return mem_strndup(text, len);
}

static void choose_address(struct s3 *s)
{
    const char *wish = getenv("NEREID_S3_ADDRESSING");
    if (!s->where.endpoint && s->aws.endpoint)
        s->where.endpoint = without_slash(s->aws.endpoint);
    s->own_endpoint = s->where.endpoint != NULL;
    s->virtual_host = !s->own_endpoint && !strchr(s->where.bucket, '.');
    if (wish && strcmp(wish, "virtual") == 0)
        s->virtual_host = true;
    else if (wish && strcmp(wish, "path") == 0)
        s->virtual_host = false;
}

/* True for a valid region: it becomes part of a host name and of what is signed. */
static bool is_region(const char *text)
{
    static const char chars[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
    size_t len = strspn(text, chars);
    return len && len < MAX_REGION && !text[len];
}

static struct err *s3_open(const char *path, struct call_net *net, void **ret)
{
    struct url_parts where;
    struct credential_entry entry;
    struct err *e = url_parse(path + strlen(SCHEME), path, &where);
    if (e)
        return e;
    e = credential_file_find("s3", path, &entry);
    if (e) {
        url_parts_fini(&where);
        return e;
    }
    struct s3 *s = MEM_NEW(struct s3);
    s->net = net;
    s->where = where;
    e = aws_init(&s->aws, net, entry.entry ? &entry : NULL);
    credential_file_fini(&entry);
    if (!e && !is_region(s->aws.region)) {
        e = err_new(STATUS_INVALID_ARG,
                    "expected a region of letters, digits, '-' and '_', found '%s'", s->aws.region);
        aws_fini(&s->aws);
    }
    if (e) {
        url_parts_fini(&s->where);
        mem_free(s);
        return err_wrap(e, "model repository '%s'", path);
    }
    mutex_init(&s->lock, MUTEX_RANK_LEAF);
    s->region = mem_strdup(s->aws.region);
    choose_address(s);
    *ret = s;
    return NULL;
}

static char *region_of(struct s3 *s)
{
    mutex_lock(&s->lock);
    char *region = mem_strdup(s->region);
    mutex_unlock(&s->lock);
    return region;
}

/* Writes "http://host:port", with the bucket in the host name if needed. */
static void put_base(const struct s3 *s, const char *region, struct strbuf *sb)
{
    if (s->own_endpoint) {
        const char *host = strstr(s->where.endpoint, "://") + 3;
        if (s->virtual_host)
            strbuf_printf(sb, "%.*s%s.%s", (int)(host - s->where.endpoint), s->where.endpoint,
                          s->where.bucket, host);
        else
            strbuf_puts(sb, s->where.endpoint);
        return;
    }
    const char *end = strncmp(region, "cn-", 3) == 0 ? ".cn" : "";
    if (s->virtual_host)
        strbuf_printf(sb, "https://%s.s3.%s.amazonaws.com%s", s->where.bucket, region, end);
    else
        strbuf_printf(sb, "https://s3.%s.amazonaws.com%s", region, end);
}

/* The value of the header Host as the client sends it: without the scheme's default port. */
static char *host_of(const char *base)
{
    const char *mark = strstr(base, "://");
    const char *host = mark ? mark + 3 : base;
    size_t len = strcspn(host, "/");
    const char *port = strncmp(base, "https", 5) == 0 ? ":443" : ":80";
    size_t port_len = strlen(port);
    if (len > port_len && strncmp(host + len - port_len, port, port_len) == 0)
        len -= port_len;
    return mem_strndup(host, len);
}

static uint64_t store_time(struct s3 *s)
{
    mutex_lock(&s->lock);
    int64_t skew = s->skew_secs;
    mutex_unlock(&s->lock);
    return clock_wall_ns() + (uint64_t)skew * 1000000000u;
}

/* Adds the headers with the signature. */
static void s3_sign(struct s3 *s, const struct aws_key *key, const char *region, const char *host,
                    struct sigv4_request *v, struct call_request *r)
{
    char date[SIGV4_DATE_CHARS + 1];
    sigv4_date(store_time(s), date);
    struct sigv4_pair headers[] = {
        {"host", host},
        {"x-amz-content-sha256", EMPTY_SHA256},
        {"x-amz-date", date},
        {"x-amz-security-token", key->token},
    };
    v->method = r->method;
    v->headers = headers;
    v->header_count = *key->token ? 4 : 3;
    v->payload_hash = EMPTY_SHA256;
    v->region = region;
    v->service = "s3";
    v->date = date;
    struct strbuf authorization = STRBUF_INIT;
    sigv4_authorization(s->net->abi, v, &(struct sigv4_key){key->id, key->secret}, &authorization);
    for (size_t i = 1; i < v->header_count; i++)
        call_header(r, "%s: %s", headers[i].name, headers[i].value);
    call_header(r, "Authorization: %s", strbuf_str(&authorization));
    strbuf_fini(&authorization);
}

/* Makes the whole request, except for headers that are not signed.
 * name  of an object below the repository; NULL = the bucket itself */
static struct err *s3_make(struct s3 *s, void *session, const char *name,
                           const struct sigv4_pair *query, size_t query_count,
                           struct call_request *r)
{
    struct aws_key key;
    struct err *e = aws_get(&s->aws, session, &key);
    if (e)
        return e;
    char *region = region_of(s);
    struct strbuf path = STRBUF_INIT;
    put_base(s, region, &r->url);
    char *host = host_of(strbuf_str(&r->url));
    strbuf_putc(&path, '/');
    if (!s->virtual_host) {
        url_escape(&path, s->where.bucket, strlen(s->where.bucket), false);
        if (name)
            strbuf_putc(&path, '/');
    }
    if (name) {
        url_escape(&path, s->where.prefix, strlen(s->where.prefix), true);
        url_escape(&path, name, strlen(name), true);
    }
    strbuf_puts(&r->url, strbuf_str(&path));
    if (query_count) {
        strbuf_putc(&r->url, '?');
        sigv4_query(query, query_count, &r->url);
    }
    call_header(r, "Host: %s", host);
    if (*key.id)
        s3_sign(s, &key, region, host,
                &(struct sigv4_request){
                    .path = strbuf_str(&path), .query = query, .query_count = query_count},
                r);
    strbuf_fini(&path);
    mem_free(host);
    mem_free(region);
    aws_key_fini(&key);
    return NULL;
}

static struct err *s3_list(void *site, void *session, const char *model, const char *page,
                           struct call_request *r)
{
    struct s3 *s = site;
    struct strbuf prefix = STRBUF_INIT;
    strbuf_puts(&prefix, s->where.prefix);
    if (model)
        strbuf_printf(&prefix, "%s/", model);
    struct sigv4_pair query[MAX_PAIRS] = {
        {"list-type", "2"}, {"encoding-type", "url"}, {"prefix", strbuf_str(&prefix)}};
    size_t count = 3;
    if (page)
        query[count++] = (struct sigv4_pair){"continuation-token", page};
    struct err *e = s3_make(s, session, NULL, query, count, r);
    strbuf_fini(&prefix);
    return e;
}

static struct err *s3_read(void *site, const char *body, size_t len, struct listing *l,
                           char **ret_next)
{
    struct s3 *s = site;
    return s3_list_read(s->net->abi, body, len, s->where.prefix, l, ret_next);
}

static struct err *s3_get(void *site, void *session, const struct listing_object *o, uint64_t from,
                          uint64_t to, struct call_request *r)
{
    struct err *e = s3_make(site, session, o->name, NULL, 0, r);
    if (e)
        return e;
    if (to > from)
        call_header(r, "Range: bytes=%" PRIu64 "-%" PRIu64, from, to - 1);
    if (o->tag[0] == '"')
        call_header(r, "If-Match: %s", o->tag);
    return NULL;
}

/* A HEAD request for the first part of an upload in parts: its length is the part size. */
static struct err *s3_first_part(void *site, void *session, const struct listing_object *o,
                                 struct call_request *r)
{
    const struct sigv4_pair query[] = {{"partNumber", "1"}};
    r->method = "HEAD";
    struct err *e = s3_make(site, session, o->name, query, 1, r);
    if (!e && o->tag[0] == '"')
        call_header(r, "If-Match: %s", o->tag);
    return e;
}

/* Notes the store's clock if it says that this clock is wrong. */
static bool take_skew(struct s3 *s, const struct call_answer *a)
{
    char date[64];
    struct tm tm = {0};
    if (!call_value(a, "date", date, sizeof(date)) || !strptime(date, "%a, %d %b %Y %H:%M:%S", &tm))
        return false;
    mutex_lock(&s->lock);
    s->skew_secs = (int64_t)timegm(&tm) - (int64_t)(clock_wall_ns() / 1000000000u);
    mutex_unlock(&s->lock);
    return true;
}

static bool take_region(struct s3 *s, const struct call_answer *a)
{
    char region[MAX_REGION + 1];
    if (!call_value(a, "x-amz-bucket-region", region, sizeof(region)) || !is_region(region))
        return false;
    mutex_lock(&s->lock);
    bool other = strcmp(region, s->region) != 0;
    if (other) {
        mem_free(s->region);
        s->region = mem_strdup(region);
    }
    mutex_unlock(&s->lock);
    return other;
}

static bool s3_renew(void *site, const struct call_answer *a)
{
    struct s3 *s = site;
    const char *body = strbuf_str(&a->body);
    if (take_region(s, a))
        return true;
    if (strstr(body, "RequestTimeTooSkewed"))
        return take_skew(s, a);
    if ((a->status == 401 || a->status == 403) && aws_is_anonymous(&s->aws))
        return aws_refused(&s->aws);
    static const char *const old_keys[] = {"ExpiredToken", "InvalidToken", "InvalidAccessKeyId",
                                           "TokenRefreshRequired", "SignatureDoesNotMatch"};
    for (size_t i = 0; i < sizeof(old_keys) / sizeof(old_keys[0]); i++)
        if (strstr(body, old_keys[i]))
            return aws_refused(&s->aws);
    return false;
}

/* The ETag is not an MD5 for objects with customer or service keys, nor in gateways that compute
 * it differently. */
static bool s3_digest_holds(const struct call_answer *a)
{
    char value[64];
    const char *is_md5 = getenv("NEREID_S3_ETAG_IS_MD5");
    if (is_md5 && strcmp(is_md5, "0") == 0)
        return false;
    if (call_value(a, "x-amz-server-side-encryption", value, sizeof(value)) &&
        strncmp(value, "aws:kms", 7) == 0)
        return false;
    return !call_value(a, "x-amz-server-side-encryption-customer-algorithm", value, sizeof(value));
}

static void s3_identify(void *site, const struct listing_object *o, struct strbuf *sb)
{
    const struct s3 *s = site;
    strbuf_printf(sb, "s3 %s %s/%s%s %s", s->own_endpoint ? s->where.endpoint : "aws",
                  s->where.bucket, s->where.prefix, o->name, o->tag);
}

const struct kind s3_kind = {
    .scheme = SCHEME,
    .mount_env = "TRITON_AWS_MOUNT_DIRECTORY",
    .open = s3_open,
    .close = s3_close,
    .list = s3_list,
    .read = s3_read,
    .get = s3_get,
    .first_part = s3_first_part,
    .renew = s3_renew,
    .digest_holds = s3_digest_holds,
    .identify = s3_identify,
};
