#pragma once
/* The interface of libnereid_cloud.so: HTTP, digests, signatures and XML, through libraries that
 * only cloud repositories need. It is a plain C table, so that both sides share no memory, error
 * objects or globals. Any thread; one thread at a time per session.
 * source  docs/decisions/0021-cloud-stores.md */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CLOUD_ABI_SYMBOL  "nereid_cloud_v1"
#define CLOUD_ABI_VERSION 4u

#define CLOUD_ABI_SHA256_BYTES 32u
#define CLOUD_ABI_MD5_BYTES    16u

enum cloud_abi_digest {
    CLOUD_ABI_SHA256,
    CLOUD_ABI_MD5,
};

/* One HTTP exchange. Everything is borrowed for the call. */
struct cloud_abi_http {
    const char *method;
    const char *url;
    const char *const *headers; /* "Name: value"; ends in NULL */
    const void *body;
    size_t body_len;
    const char *ca_file; /* NULL = the system's authorities */
    bool direct;         /* without a proxy */
    uint32_t connect_ms;
    uint32_t stall_secs;       /* the exchange fails after this time with almost no data */
    uint32_t total_ms;         /* limit of the whole exchange; 0 = no limit */
    const atomic_bool *cancel; /* set by another thread: end soon */

    /* Called on the thread of the exchange; returning false ends it. The status is set before
     * the first call. */
    bool (*on_header)(void *owner, const char *name, size_t name_len, const char *value,
                      size_t value_len);
    bool (*on_body)(void *owner, const void *data, size_t len);
    void *owner;

    int status;      /* of the answer; 0 = no answer */
    char error[256]; /* why the exchange failed; "" = it succeeded */
    bool refused;    /* there is no connection: refused, or no route */
    bool silent;     /* the time was over, and nothing had been answered */
    /* a later attempt will fail too: an untrusted certificate, an invalid address */
    bool hopeless;
};

/* The events of an XML document; text comes in pieces. */
struct cloud_abi_xml {
    void (*open)(void *owner, const char *name);
    void (*text)(void *owner, const char *data, size_t len);
    void (*close)(void *owner, const char *name);
    void *owner;
};

struct cloud_abi {
    uint32_t version;

    /* A session keeps connections open; one thread at a time. NULL if there is no memory. */
    void *(*session_new)(void);
    void (*session_free)(void *session);
    void (*http)(void *session, struct cloud_abi_http *x);

    /* NULL if the digest is not available (MD5, if the system's policy forbids it). end writes
     * the digest and frees it. */
    void *(*digest_new)(enum cloud_abi_digest kind);
    void (*digest_add)(void *digest, const void *data, size_t len);
    void (*digest_end)(void *digest, unsigned char *out);
    void (*hmac_sha256)(const void *key, size_t key_len, const void *data, size_t len,
                        unsigned char out[CLOUD_ABI_SHA256_BYTES]);

    /* RSASSA-PKCS1-v1_5 over SHA-256 with a private key in PEM. Returns the bytes written to
     * out, 0 on failure. */
    size_t (*sign_rs256)(const char *pem, size_t pem_len, const void *data, size_t len,
                         unsigned char *out, size_t cap);

    /* false: not well formed, or with a document type. */
    bool (*xml)(const char *text, size_t len, const struct cloud_abi_xml *handler);
};
