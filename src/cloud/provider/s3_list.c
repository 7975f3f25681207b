#include "cloud/provider/s3_list.h"

#include "base/mem.h"
#include "base/strbuf.h"
#include "cloud/provider/listing.h"
#include "cloud/web/cloud_abi.h"
#include "cloud/web/url.h"

#include <stdlib.h>
#include <string.h>

struct item {
    char *key;
    char *tag;
    char *changed;
    uint64_t size;
};

struct page {
    unsigned depth;
    bool in_item;
    bool is_listing;
    bool escaped; /* names are URL-encoded */
    bool more;
    bool wrong;
    char *next;
    struct strbuf text;
    struct item now;
    struct item *items;
    size_t count;
};

static void s3_list_opened(void *owner, const char *name)
{
    struct page *p = owner;
    p->depth++;
    p->text.len = 0;
    strbuf_puts(&p->text, "");
    if (p->depth == 1)
        p->is_listing = strcmp(name, "ListBucketResult") == 0;
    else if (p->depth == 2 && strcmp(name, "Contents") == 0)
        p->in_item = true;
}

static void s3_list_wrote(void *owner, const char *data, size_t len)
{
    struct page *p = owner;
    strbuf_append(&p->text, data, len);
}

static void s3_list_set(char **field, const struct strbuf *text)
{
    mem_free(*field);
    *field = mem_strndup(strbuf_str(text), text->len);
}

static void take_item_field(struct page *p, const char *name)
{
    if (strcmp(name, "Key") == 0)
        s3_list_set(&p->now.key, &p->text);
    else if (strcmp(name, "ETag") == 0)
        s3_list_set(&p->now.tag, &p->text);
    else if (strcmp(name, "LastModified") == 0)
        s3_list_set(&p->now.changed, &p->text);
    else if (strcmp(name, "Size") == 0) {
        char *end;
        p->now.size = strtoull(strbuf_str(&p->text), &end, 10);
        p->wrong = p->wrong || *end || !p->text.len || *p->text.data == '-';
    }
}

static void take_page_field(struct page *p, const char *name)
{
    const char *text = strbuf_str(&p->text);
    if (strcmp(name, "IsTruncated") == 0)
        p->more = strcmp(text, "true") == 0;
    else if (strcmp(name, "NextContinuationToken") == 0)
        s3_list_set(&p->next, &p->text);
    else if (strcmp(name, "EncodingType") == 0)
        p->escaped = strcmp(text, "url") == 0;
}

static void s3_list_closed(void *owner, const char *name)
{
    struct page *p = owner;
    if (p->depth == 3 && p->in_item) {
        take_item_field(p, name);
    } else if (p->depth == 2 && p->in_item) {
        if ((p->count & (p->count - 1)) == 0)
            p->items = mem_realloc(p->items, (p->count ? p->count * 2 : 1) * sizeof(*p->items));
        p->items[p->count++] = p->now;
        p->now = (struct item){0};
        p->in_item = false;
    } else if (p->depth == 2) {
        take_page_field(p, name);
    }
    p->depth--;
    p->text.len = 0;
    strbuf_puts(&p->text, "");
}

/* Writes the digest in an ETag: "\"<32>\"" is the MD5, "\"<32>-N\"" the MD5 of the MD5s of N
 * parts. */
static void s3_list_put_digest(const char *tag, struct strbuf *sb)
{
    size_t len = strlen(tag);
    if (len < 34 || tag[0] != '"' || tag[len - 1] != '"' ||
        strspn(tag + 1, "0123456789abcdef") != 32)
        return;
    if (len == 34)
        strbuf_printf(sb, "md5:%.32s", tag + 1);
    else if (tag[33] == '-' && strspn(tag + 34, "0123456789") == len - 35)
        strbuf_printf(sb, "md5parts:%.*s", (int)(len - 2), tag + 1);
}

static struct err *s3_list_take(struct page *p, const char *prefix, struct listing *l)
{
    size_t prefix_len = strlen(prefix);
    struct err *e = NULL;
    for (size_t i = 0; !e && i < p->count; i++) {
        struct item *it = &p->items[i];
        if (!it->key)
            return err_new(STATUS_INVALID_ARG, "a listing with an object without a name");
        size_t len = strlen(it->key);
        if (p->escaped)
            len = url_unescape(it->key, len, true);
        if (len < prefix_len || memcmp(it->key, prefix, prefix_len) != 0)
            return err_new(STATUS_INVALID_ARG, "a listing with an object that was not asked for");
        if (len == prefix_len)
            continue; /* the directory itself */
        struct strbuf digest = STRBUF_INIT;
        const char *tag = it->tag && *it->tag ? it->tag : it->changed ? it->changed : "";
        s3_list_put_digest(tag, &digest);
        e = listing_add(l, it->key + prefix_len, len - prefix_len, it->size, tag,
                        strbuf_str(&digest));
        strbuf_fini(&digest);
    }
    return e;
}

static void page_fini(struct page *p)
{
    for (size_t i = 0; i <= p->count; i++) {
        struct item *it = i < p->count ? &p->items[i] : &p->now;
        mem_free(it->key);
        mem_free(it->tag);
        mem_free(it->changed);
    }
    mem_free(p->items);
    mem_free(p->next);
    strbuf_fini(&p->text);
}

struct err *s3_list_read(const struct cloud_abi *abi, const char *body, size_t len,
                         const char *prefix, struct listing *l, char **ret_next)
{
    struct page p = {0};
    const struct cloud_abi_xml handler = {
        .open = s3_list_opened, .text = s3_list_wrote, .close = s3_list_closed, .owner = &p};
    bool ok = abi->xml(body, len, &handler) && p.is_listing && !p.wrong;
    struct err *e = NULL;
    *ret_next = NULL;
    if (!ok || (p.more && (!p.next || !*p.next)))
        e = err_new(STATUS_INVALID_ARG, "the answer is not a listing");
    if (!e)
        e = s3_list_take(&p, prefix, l);
    if (!e && p.more) {
        *ret_next = p.next;
        p.next = NULL;
    }
    page_fini(&p);
    return e;
}
