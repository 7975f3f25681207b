#pragma once
/* What libnereid_tls.so offers: TLS for servers over OpenSSL, which only front ends with a
 * certificate need. A plain C table, so that the two sides share no memory, no error object and
 * no global. Contexts: any thread. A session belongs to the thread of its connection.
 * source  docs/internals/tls.md */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#define TLS_ABI_SYMBOL  "nereid_tls_v1"
#define TLS_ABI_VERSION 1u

#define TLS_ABI_TEXT_BYTES 256u

/* Which of the files is at fault. */
enum tls_abi_part {
    TLS_ABI_CERT,
    TLS_ABI_KEY,
    TLS_ABI_ROOT,
    TLS_ABI_LIBRARY, /* none of them */
};

/* What a context is made of. Everything is borrowed for the call; files are given by their
 * contents, PEM. */
struct tls_abi_setup {
    const char *cert; /* of the server, then those that lead to its authority */
    size_t cert_len;
    const char *key;
    size_t key_len;
    const char *root; /* of the authorities that sign those of clients; NULL = they need none */
    size_t root_len;
    /* the protocols that are spoken, the preferred one first: a length in a byte, a name, and so
     * on; not longer than 64 bytes */
    const char *protocols;
    size_t protocols_len;
    bool protocol_needed; /* who names none is sent away */

    /* what is found: */
    enum tls_abi_part part;        /* when there is no context */
    char text[TLS_ABI_TEXT_BYTES]; /* what is wrong with it; else the subject of the certificate */
    int64_t not_before;            /* of the server's certificate, seconds since 1970 */
    int64_t not_after;
};

enum tls_abi_protocol {
    TLS_ABI_PROTOCOL_NONE, /* the client named none */
    TLS_ABI_PROTOCOL_HTTP1,
    TLS_ABI_PROTOCOL_H2,
};

/* The head of every session. The server only reads it. */
struct tls_abi_session {
    bool established; /* the handshake is over */
    bool resumed;     /* by a ticket of an earlier session */
    bool wants_out;   /* goes on when the socket takes bytes */
    bool holds;       /* a read would give bytes, though the socket perhaps has none */
    enum tls_abi_protocol protocol; /* once established */
    const char *fault; /* why it failed, static; NULL = it did not, or only the socket did */
};

struct tls_abi {
    uint32_t version;

    /* NULL: see setup->part and text. context_free lets go; sessions keep it as long as they
     * last. */
    void *(*context_new)(struct tls_abi_setup *setup);
    void (*context_free)(void *context);

    /* On a connected socket, which stays the caller's. NULL when there is no memory. */
    struct tls_abi_session *(*session_new)(void *context, int fd);
    void (*session_free)(struct tls_abi_session *s);

    /* Both do the handshake as far as it gets, and as many system calls as they need. Bytes read
     * or written; -2 = it failed, close it. read: 0 = the peer closed its side, -1 = would block;
     * it takes n bytes and a record more off the socket at most. write: 0 = would block; the same
     * bytes must come first again. */
    ssize_t (*read)(struct tls_abi_session *s, void *to, size_t n);
    ssize_t (*write)(struct tls_abi_session *s, const struct iovec *pieces, int count);

    /* Tell the peer that nothing more comes. */
    void (*goodbye)(struct tls_abi_session *s);
};
