#include "cloud/provider/azure_key.h"

#include "cloud/web/cloud_abi.h"
#include "cloud/web/text.h"

void azure_key_to_sign(const struct azure_key_request *r, struct strbuf *sb)
{
    /* The method; then the values of Content-Encoding, -Language, -Length, -MD5, -Type, Date and
     * If-Modified-Since, which are not sent. */
    strbuf_puts(sb, "GET\n\n\n\n\n\n\n\n");
    strbuf_printf(sb, "%s\n\n\n%s\n", r->if_match, r->range);
    for (size_t i = 0; i < r->header_count; i++)
        strbuf_printf(sb, "%s:%s\n", r->headers[i].name, r->headers[i].value);
    strbuf_printf(sb, "/%s%s", r->account, r->path);
    for (size_t i = 0; i < r->query_count; i++)
        strbuf_printf(sb, "\n%s:%s", r->query[i].name, r->query[i].value);
}

void azure_key_authorization(const struct cloud_abi *abi, const struct azure_key_request *r,
                             const void *key, size_t key_len, struct strbuf *sb)
{
    struct strbuf text = STRBUF_INIT;
    unsigned char out[CLOUD_ABI_SHA256_BYTES];
    azure_key_to_sign(r, &text);
    abi->hmac_sha256(key, key_len, text.data, text.len, out);
    strbuf_printf(sb, "SharedKey %s:", r->account);
    text_base64(sb, out, sizeof(out), false);
    strbuf_fini(&text);
}
