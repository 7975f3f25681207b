#pragma once
/* What a model says, as strings of JSON, which clients read as UTF-8: anything else becomes U+FFFD.
 * Pure. */
#include <stddef.h>

struct strbuf;

/* openai_text_put - append text as a string in quotes. */
void openai_text_put(struct strbuf *to, const char *text, size_t len);

/* openai_text_whole - how many bytes of a text come before a character whose end is missing, if
 * it ends so; else all. At most 3 bytes less. */
size_t openai_text_whole(const char *text, size_t len);
