#pragma once
/* What libnereid_cloud.so offers: HTTP, digests, signatures and XML, over libraries that only
 * cloud repositories need. A plain C table, so that the two sides share no memory, no error
 * object and no global. Any thread; one session per thread at a time.
 * source  docs/decisions/0021-cloud-stores.md */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CLOUD_ABI_SYMBOL  "nereid_cloud_v1"
#define CLOUD_ABI_VERSION 2u

#define CLOUD_ABI_SHA256_BYTES 32u
#define CLOUD_ABI_MD5_BYTES    16u

enum cloud_abi_digest {
    CLOUD_ABI_SHA256,
    CLOUD_ABI_MD5,
};

/* Whether anybody was there. */
enum cloud_abi_reach {
    CLOUD_ABI_REACHED, /* there was a connection, or it is not known */
    CLOUD_ABI_REFUSED, /* no connection: refused, or there is no way there */
    CLOUD_ABI_SILENT,  /* no connection within the time for one */
};

/* One HTTP exchange. Everything is borrowed for the call. */
struct cloud_abi_http {
    const char *method;
    const char *url;
    const char *const *headers; /* "Name: value"; ends in NULL */
    const void *body;
    size_t body_len;
    const char *ca_file; /* NULL = the system's authorities */
    bool direct;         /* past any proxy */
    uint32_t connect_ms;
    uint32_t stall_secs;       /* with next to nothing for so long, the exchange has failed */
    uint32_t total_ms;         /* it may take no longer; 0 = no limit */
    const atomic_bool *cancel; /* set by another thread: end soon */

    /* Called on the thread of the exchange; false ends it. The status is set before the first of
     * them. */
    bool (*on_header)(void *owner, const char *name, size_t name_len, const char *value,
                      size_t value_len);
    bool (*on_body)(void *owner, const void *data, size_t len);
    void *owner;

    int status;      /* of the answer; 0 = there was none */
    char error[256]; /* why the exchange did not come to its end; "" = it did */
    enum cloud_abi_reach reach;
    /* and no later one will: a certificate that is not trusted, an address that is none */
    bool hopeless;
};

/* What an XML document consists of; text comes in pieces. */
struct cloud_abi_xml {
    void (*open)(void *owner, const char *name);
    void (*text)(void *owner, const char *data, size_t len);
    void (*close)(void *owner, const char *name);
    void *owner;
};

struct cloud_abi {
    uint32_t version;

    /* A session keeps connections open; not for two threads at once. NULL when there is no
     * memory. */
    void *(*session_new)(void);
    void (*session_free)(void *session);
    void (*http)(void *session, struct cloud_abi_http *x);

    /* NULL when the kind is not available (MD5, where the system's policy forbids it). end
     * writes the digest and frees. */
    void *(*digest_new)(enum cloud_abi_digest kind);
    void (*digest_add)(void *digest, const void *data, size_t len);
    void (*digest_end)(void *digest, unsigned char *out);
    void (*hmac_sha256)(const void *key, size_t key_len, const void *data, size_t len,
                        unsigned char out[CLOUD_ABI_SHA256_BYTES]);

    /* RSASSA-PKCS1-v1_5 over SHA-256 with a private key in PEM; the bytes written to out, 0 when
     * it cannot be done. */
    size_t (*sign_rs256)(const char *pem, size_t pem_len, const void *data, size_t len,
                         unsigned char *out, size_t cap);

    /* false: not well formed, or with a document type. */
    bool (*xml)(const char *text, size_t len, const struct cloud_abi_xml *handler);
};
