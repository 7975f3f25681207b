#pragma once
/* Bytes as text, for signatures. Pure. */
#include "base/strbuf.h"

#include <stdbool.h>
#include <stddef.h>

/* text_base64 - the standard alphabet with padding, or that of URLs without. */
void text_base64(struct strbuf *sb, const void *bytes, size_t len, bool for_url);
void text_hex(struct strbuf *sb, const void *bytes, size_t len);
