/* Digests and signatures through OpenSSL. */
#include "module.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <limits.h>
#include <string.h>

void *digest_new(enum cloud_abi_digest kind)
{
    EVP_MD_CTX *c = EVP_MD_CTX_new();
    if (c && EVP_DigestInit_ex(c, kind == CLOUD_ABI_MD5 ? EVP_md5() : EVP_sha256(), NULL) == 1)
        return c;
    EVP_MD_CTX_free(c);
    return NULL;
}

void digest_add(void *digest, const void *data, size_t len)
{
    EVP_DigestUpdate(digest, data, len);
}

void digest_end(void *digest, unsigned char *out)
{
    unsigned len;
    EVP_DigestFinal_ex(digest, out, &len);
    EVP_MD_CTX_free(digest);
}

void digest_hmac_sha256(const void *key, size_t key_len, const void *data, size_t len,
                        unsigned char out[CLOUD_ABI_SHA256_BYTES])
{
    unsigned out_len = CLOUD_ABI_SHA256_BYTES;
    memset(out, 0, out_len);
    if (key_len <= INT_MAX)
        HMAC(EVP_sha256(), key, (int)key_len, data, len, out, &out_len);
}

size_t digest_sign_rs256(const char *pem, size_t pem_len, const void *data, size_t len,
                         unsigned char *out, size_t cap)
{
    BIO *bio = pem_len <= INT_MAX ? BIO_new_mem_buf(pem, (int)pem_len) : NULL;
    char no_password[] = "";
    EVP_PKEY *key = bio ? PEM_read_bio_PrivateKey(bio, NULL, NULL, no_password) : NULL;
    EVP_MD_CTX *c = key ? EVP_MD_CTX_new() : NULL;
    size_t n = cap;
    if (!c || EVP_PKEY_get_base_id(key) != EVP_PKEY_RSA ||
        EVP_DigestSignInit(c, NULL, EVP_sha256(), NULL, key) != 1 ||
        EVP_DigestSign(c, out, &n, data, len) != 1)
        n = 0;
    EVP_MD_CTX_free(c);
    EVP_PKEY_free(key);
    BIO_free(bio);
    return n;
}
