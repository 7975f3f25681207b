#pragma once

#include <stddef.h>

/* bfind_named - find an entry of an array by its name.
 * entries  structures whose first member is their name, a char *
 * size     of one
 * name     NULL finds nothing
 * returns  the entry; NULL if there is none */
void *bfind_named(void *entries, size_t count, size_t size, const char *name);
