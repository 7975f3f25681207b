#pragma once
/* Parses the files that `aws configure` writes: sections with names and values. Pure. */
#include <stdbool.h>
#include <stddef.h>

/* ini_find - the value of a name in a section. Comments, surrounding spaces and nested lines are
 * skipped. The last value counts.
 * section  the text between the brackets, with single spaces
 * name     NULL = only check that the section exists: returns "" then
 * returns  owned by the caller (mem_free); NULL if there is none */
char *ini_find(const char *text, const char *section, const char *name);
