#pragma once
/* The interface of libnereid_tls.so: TLS for servers through OpenSSL, which only front ends with
 * a certificate need. It is a plain C table, so that both sides share no memory, error objects
 * or globals. Contexts: any thread. A session belongs to the thread of its connection.
 * source  docs/internals/tls.md */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#define TLS_ABI_SYMBOL  "nereid_tls_v1"
#define TLS_ABI_VERSION 1u

#define TLS_ABI_TEXT_BYTES 256u

/* The file that has the problem. */
enum tls_abi_part {
    TLS_ABI_CERT,
    TLS_ABI_KEY,
    TLS_ABI_ROOT,
    TLS_ABI_LIBRARY, /* none of the files */
};

/* The settings of a context. Everything is borrowed for the call; files are given by their
 * contents, PEM. */
struct tls_abi_setup {
    const char *cert; /* the server's certificate, then those up to its authority */
    size_t cert_len;
    const char *key;
    size_t key_len;
    const char *root; /* of the authorities for client certificates; NULL = clients need none */
    size_t root_len;
    /* the supported protocols, the preferred one first: a length in a byte, a name, and so on;
     * at most 64 bytes */
    const char *protocols;
    size_t protocols_len;
    bool protocol_needed; /* a client that names no protocol is refused */

    /* Results: */
    enum tls_abi_part part;        /* set if no context was made */
    char text[TLS_ABI_TEXT_BYTES]; /* the problem; on success the subject of the certificate */
    int64_t not_before;            /* all certificates of `cert` are valid then, ... */
    int64_t not_after;             /* ... until then; seconds since 1970 */
};

enum tls_abi_protocol {
    TLS_ABI_PROTOCOL_NONE, /* the client named none */
    TLS_ABI_PROTOCOL_HTTP1,
    TLS_ABI_PROTOCOL_H2,
};

/* The beginning of every session. The server only reads it. */
struct tls_abi_session {
    bool established;               /* the handshake is over */
    bool resumed;                   /* resumed by a ticket of an earlier session */
    bool wants_out;                 /* it continues when the socket takes bytes */
    bool holds;                     /* a read would give bytes, even if the socket has none */
    enum tls_abi_protocol protocol; /* once established */
    const char *fault; /* why it failed, static; NULL = no failure, or only the socket failed */
};

struct tls_abi {
    uint32_t version;

    /* NULL on failure: see setup->part and text. context_free drops the context; sessions keep
     * it as long as they live. */
    void *(*context_new)(struct tls_abi_setup *setup);
    void (*context_free)(void *context);

    /* For a connected socket, which the caller owns. NULL if there is no memory. */
    struct tls_abi_session *(*session_new)(void *context, int fd);
    void (*session_free)(struct tls_abi_session *s);

    /* Both continue the handshake as far as possible, with as many system calls as needed. They
     * return the bytes read or written; -2 = failed, close it. read: 0 = the peer closed its side,
     * -1 = would block; it takes at most n bytes and one record more from the socket. write: 0 =
     * would block; the next call must begin with the same bytes. */
    ssize_t (*read)(struct tls_abi_session *s, void *to, size_t n);
    ssize_t (*write)(struct tls_abi_session *s, const struct iovec *pieces, int count);

    /* Tells the peer that nothing more will be sent. */
    void (*goodbye)(struct tls_abi_session *s);
};
