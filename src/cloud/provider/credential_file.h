#pragma once
/* The file that TRITON_CLOUD_CREDENTIAL_PATH names: credentials for repositories by the
 * beginning of their path.
 *
 *   {"gs": {"": "KEY FILE", "gs://bucket-a": "KEY FILE"},
 *    "s3": {"": {"secret_key": "", "key_id": "", "region": "", "session_token": "", "profile":
 *    ""}}, "as": {"": {"account_str": "", "account_key": "", "auth_type": "", "client_id": ""}}} */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct yyjson_doc;
struct yyjson_val;

struct credential_entry {
    struct yyjson_doc *doc;
    struct yyjson_val *entry; /* NULL = there is no such file: use the environment */
};

/* credential_file_find - find the entry whose name is the longest prefix of the path.
 * kind    "gs", "s3" or "as"
 * errors  INVALID_ARG: not JSON; NOT_FOUND: the file does not exist, or no entry matches */
struct err *credential_file_find(const char *kind, const char *path, struct credential_entry *ret);

/* credential_file_text - the text of a member, or of the entry itself for NULL; "" if there is
 * none. Valid until fini. */
const char *credential_file_text(const struct credential_entry *e, const char *member);
void credential_file_fini(struct credential_entry *e);
