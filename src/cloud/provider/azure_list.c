#include "cloud/provider/azure_list.h"

#include "base/mem.h"
#include "base/strbuf.h"
#include "codec/base64.h"
#include "cloud/provider/listing.h"
#include "cloud/web/cloud_abi.h"
#include "cloud/web/text.h"

#include <stdlib.h>
#include <string.h>

#define MD5_BYTES 16u

struct page {
    unsigned depth;
    bool in_blob;
    bool is_listing;
    struct err *error;
    const char *prefix;
    struct listing *listing;
    char *next;
    struct strbuf text;
    struct strbuf name; /* of the current blob */
    struct strbuf tag;
    struct strbuf md5;
    struct strbuf size;
    bool directory; /* a directory, in a storage account with directories */
};

static void clear(struct strbuf *sb)
{
    sb->len = 0;
    strbuf_puts(sb, "");
}

static void azure_list_opened(void *owner, const char *name)
{
    struct page *p = owner;
    p->depth++;
    clear(&p->text);
    if (p->depth == 1)
        p->is_listing = strcmp(name, "EnumerationResults") == 0;
    if (p->depth != 3 || strcmp(name, "Blob") != 0)
        return;
    p->in_blob = true;
    p->directory = false;
    clear(&p->name);
    clear(&p->tag);
    clear(&p->md5);
    clear(&p->size);
}

static void azure_list_wrote(void *owner, const char *data, size_t len)
{
    struct page *p = owner;
    strbuf_append(&p->text, data, len);
}

static void azure_list_keep(struct strbuf *field, const struct page *p)
{
    clear(field);
    strbuf_append(field, p->text.data, p->text.len);
}

static void azure_list_put_digest(struct strbuf *sb, const struct strbuf *md5)
{
    unsigned char out[64];
    size_t len;
    if (!md5->len || base64_room(md5->len) > sizeof(out) ||
        !base64_decode(md5->data, md5->len, BASE64_ONE_LINE, out, &len) || len != MD5_BYTES)
        return;
    strbuf_puts(sb, "md5:");
    text_hex(sb, out, len);
}

static struct err *azure_list_take(struct page *p)
{
    size_t prefix_len = strlen(p->prefix);
    const char *size = strbuf_str(&p->size);
    if (!*size || strspn(size, "0123456789") != p->size.len || p->name.len < prefix_len ||
        memcmp(p->name.data, p->prefix, prefix_len) != 0)
        return err_new(STATUS_INVALID_ARG, "a listing with a blob that was not asked for");
    if (p->name.len == prefix_len)
        return NULL;
    if (p->directory && p->name.data[p->name.len - 1] != '/')
        strbuf_putc(&p->name, '/');
    struct strbuf digest = STRBUF_INIT;
    azure_list_put_digest(&digest, &p->md5);
    struct err *e = listing_add(p->listing, p->name.data + prefix_len, p->name.len - prefix_len,
                                strtoull(size, NULL, 10), strbuf_str(&p->tag), strbuf_str(&digest));
    strbuf_fini(&digest);
    return e;
}

static void azure_list_closed(void *owner, const char *name)
{
    struct page *p = owner;
    if (p->in_blob && p->depth == 4 && strcmp(name, "Name") == 0)
        azure_list_keep(&p->name, p);
    else if (p->in_blob && p->depth == 5 && strcmp(name, "Content-Length") == 0)
        azure_list_keep(&p->size, p);
    else if (p->in_blob && p->depth == 5 && strcmp(name, "Etag") == 0)
        azure_list_keep(&p->tag, p);
    else if (p->in_blob && p->depth == 5 && strcmp(name, "Content-MD5") == 0)
        azure_list_keep(&p->md5, p);
    else if (p->in_blob && p->depth == 5 && strcmp(name, "ResourceType") == 0)
        p->directory = strcmp(strbuf_str(&p->text), "directory") == 0;
    else if (p->depth == 2 && strcmp(name, "NextMarker") == 0) {
        mem_free(p->next);
        p->next = mem_strndup(strbuf_str(&p->text), p->text.len);
    } else if (p->in_blob && p->depth == 3) {
        if (!p->error)
            p->error = azure_list_take(p);
        p->in_blob = false;
    }
    p->depth--;
    clear(&p->text);
}

struct err *azure_list_read(const struct cloud_abi *abi, const char *body, size_t len,
                            const char *prefix, struct listing *l, char **ret_next)
{
    /* The text may begin with a byte order mark. */
    if (len >= 3 && memcmp(body, "\xef\xbb\xbf", 3) == 0) {
        body += 3;
        len -= 3;
    }
    struct page p = {.prefix = prefix, .listing = l};
    const struct cloud_abi_xml handler = {.open = azure_list_opened,
                                          .text = azure_list_wrote,
                                          .close = azure_list_closed,
                                          .owner = &p};
    bool ok = abi->xml(body, len, &handler) && p.is_listing;
    if (!ok) {
        err_free(p.error);
        p.error = err_new(STATUS_INVALID_ARG, "the answer is not a listing");
    }
    *ret_next = NULL;
    if (!p.error && p.next && *p.next) {
        *ret_next = p.next;
        p.next = NULL;
    }
    mem_free(p.next);
    strbuf_fini(&p.text);
    strbuf_fini(&p.name);
    strbuf_fini(&p.tag);
    strbuf_fini(&p.md5);
    strbuf_fini(&p.size);
    return p.error;
}
