#pragma once
/* The files that `aws configure` writes: sections of names and values. Pure. */
#include <stdbool.h>
#include <stddef.h>

/* ini_find - the value of a name in a section; comments, spaces around and nested lines are
 * passed over. The last one counts.
 * section  the text between the brackets, spaces as single ones
 * name     NULL = only whether the section is there: "" then
 * returns  the caller's (mem_free), NULL when there is none */
char *ini_find(const char *text, const char *section, const char *name);
