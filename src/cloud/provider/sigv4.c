#include "cloud/provider/sigv4.h"

#include "base/mem.h"
#include "cloud/web/cloud_abi.h"
#include "cloud/web/text.h"
#include "cloud/web/url.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ALGORITHM "AWS4-HMAC-SHA256"

void sigv4_date(uint64_t wall_ns, char ret[SIGV4_DATE_CHARS + 1])
{
    time_t seconds = (time_t)(wall_ns / 1000000000u);
    struct tm tm;
    gmtime_r(&seconds, &tm);
    if (strftime(ret, SIGV4_DATE_CHARS + 1, "%Y%m%dT%H%M%SZ", &tm) == 0)
        ret[0] = '\0';
}

struct escaped {
    char *name;
    char *value;
};

static int by_name_and_value(const void *a, const void *b)
{
    const struct escaped *x = a;
    const struct escaped *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : strcmp(x->value, y->value);
}

static char *escape(const char *text)
{
    struct strbuf sb = STRBUF_INIT;
    url_escape(&sb, text, strlen(text), false);
    return strbuf_take(&sb);
}

void sigv4_query(const struct sigv4_pair *query, size_t count, struct strbuf *sb)
{
    struct escaped *all = mem_alloc((count + 1) * sizeof(*all));
    for (size_t i = 0; i < count; i++)
        all[i] = (struct escaped){escape(query[i].name), escape(query[i].value)};
    if (count)
        qsort(all, count, sizeof(*all), by_name_and_value);
    for (size_t i = 0; i < count; i++) {
        strbuf_printf(sb, "%s%s=%s", i ? "&" : "", all[i].name, all[i].value);
        mem_free(all[i].name);
        mem_free(all[i].value);
    }
    mem_free(all);
}

/* The name in lower case, and the value without spaces at its ends and with single spaces
 * inside. */
static struct escaped header_of(const struct sigv4_pair *h)
{
    struct strbuf name = STRBUF_INIT;
    struct strbuf value = STRBUF_INIT;
    for (const char *c = h->name; *c; c++)
        strbuf_putc(&name, *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c);
    const char *from = h->value + strspn(h->value, " ");
    for (const char *c = from; *c; c++)
        if (*c != ' ' || (c[1] != ' ' && c[1] != '\0'))
            strbuf_putc(&value, *c);
    return (struct escaped){strbuf_take(&name), strbuf_take(&value)};
}

static int by_header(const void *a, const void *b)
{
    return strcmp(((const struct escaped *)a)->name, ((const struct escaped *)b)->name);
}

/* Writes the headers in their order, and their names separated by ';'. */
static void put_headers(const struct sigv4_request *r, struct strbuf *lines, struct strbuf *names)
{
    struct escaped *all = mem_alloc((r->header_count + 1) * sizeof(*all));
    for (size_t i = 0; i < r->header_count; i++)
        all[i] = header_of(&r->headers[i]);
    if (r->header_count)
        qsort(all, r->header_count, sizeof(*all), by_header);
    for (size_t i = 0; i < r->header_count; i++) {
        if (lines)
            strbuf_printf(lines, "%s:%s\n", all[i].name, all[i].value);
        strbuf_printf(names, "%s%s", i ? ";" : "", all[i].name);
        mem_free(all[i].name);
        mem_free(all[i].value);
    }
    mem_free(all);
}

void sigv4_canonical(const struct sigv4_request *r, struct strbuf *sb)
{
    struct strbuf names = STRBUF_INIT;
    strbuf_printf(sb, "%s\n%s\n", r->method, r->path);
    sigv4_query(r->query, r->query_count, sb);
    strbuf_putc(sb, '\n');
    put_headers(r, sb, &names);
    strbuf_printf(sb, "\n%s\n%s", strbuf_str(&names), r->payload_hash);
    strbuf_fini(&names);
}

static void put_scope(const struct sigv4_request *r, struct strbuf *sb)
{
    strbuf_printf(sb, "%.8s/%s/%s/aws4_request", r->date, r->region, r->service);
}

void sigv4_to_sign(const struct cloud_abi *m, const struct sigv4_request *r, struct strbuf *sb)
{
    struct strbuf canonical = STRBUF_INIT;
    unsigned char sha[CLOUD_ABI_SHA256_BYTES];
    sigv4_canonical(r, &canonical);
    void *digest = m->digest_new(CLOUD_ABI_SHA256);
    m->digest_add(digest, strbuf_str(&canonical), canonical.len);
    m->digest_end(digest, sha);
    strbuf_printf(sb, ALGORITHM "\n%s\n", r->date);
    put_scope(r, sb);
    strbuf_putc(sb, '\n');
    text_hex(sb, sha, sizeof(sha));
    strbuf_fini(&canonical);
}

static void chain(const struct cloud_abi *m, unsigned char key[CLOUD_ABI_SHA256_BYTES],
                  const char *text, size_t len)
{
    unsigned char out[CLOUD_ABI_SHA256_BYTES];
    m->hmac_sha256(key, CLOUD_ABI_SHA256_BYTES, text, len, out);
    memcpy(key, out, sizeof(out));
}

void sigv4_authorization(const struct cloud_abi *m, const struct sigv4_request *r,
                         const struct sigv4_key *key, struct strbuf *sb)
{
    struct strbuf text = STRBUF_INIT;
    struct strbuf names = STRBUF_INIT;
    unsigned char k[CLOUD_ABI_SHA256_BYTES];
    strbuf_printf(&text, "AWS4%s", key->secret);
    m->hmac_sha256(text.data, text.len, r->date, 8, k);
    strbuf_fini(&text);
    chain(m, k, r->region, strlen(r->region));
    chain(m, k, r->service, strlen(r->service));
    chain(m, k, "aws4_request", strlen("aws4_request"));
    sigv4_to_sign(m, r, &text);
    chain(m, k, text.data, text.len);
    put_headers(r, NULL, &names);
    strbuf_printf(sb, ALGORITHM " Credential=%s/", key->id);
    put_scope(r, sb);
    strbuf_printf(sb, ", SignedHeaders=%s, Signature=", strbuf_str(&names));
    text_hex(sb, k, sizeof(k));
    strbuf_fini(&names);
    strbuf_fini(&text);
}
