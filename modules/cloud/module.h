#pragma once
/* The functions of the table in cloud/web/cloud_abi.h, shared by the files of the module. */
#include "cloud/web/cloud_abi.h"

void *http_session_new(void);
void http_session_free(void *session);
void http_run(void *session, struct cloud_abi_http *x);

void *digest_new(enum cloud_abi_digest kind);
void digest_add(void *digest, const void *data, size_t len);
void digest_end(void *digest, unsigned char *out);
void digest_hmac_sha256(const void *key, size_t key_len, const void *data, size_t len,
                        unsigned char out[CLOUD_ABI_SHA256_BYTES]);
size_t digest_sign_rs256(const char *pem, size_t pem_len, const void *data, size_t len,
                         unsigned char *out, size_t cap);

bool xml_parse(const char *text, size_t len, const struct cloud_abi_xml *handler);
