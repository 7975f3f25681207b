#pragma once
/* Types shared by the files of libnereid_tls.so. */
#include "net/tls/tls_abi.h"

#include <openssl/ssl.h>
#include <stdatomic.h>

/* A context: certificates, keys and rules. Who made it has a reference, and so has each session. */
struct context {
    atomic_uint refs; /* who drops the last one frees it */
    SSL_CTX *ssl;
    char protocols[64];
    unsigned protocols_len;
    bool protocol_needed;
};

void *context_new(struct tls_abi_setup *setup);
void context_free(void *context);

/* context_of - the context of a session. */
const struct context *context_of(const SSL *ssl);

struct tls_abi_session *session_new(void *context, int fd);
void session_free(struct tls_abi_session *s);
ssize_t session_read(struct tls_abi_session *s, void *to, size_t n);
ssize_t session_write(struct tls_abi_session *s, const struct iovec *pieces, int count);
void session_goodbye(struct tls_abi_session *s);

/* session_noticed - a handshake message came. */
void session_noticed(const SSL *ssl, int where, int value);
