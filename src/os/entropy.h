#pragma once
/* Bytes that nobody can guess. */
#include <stddef.h>

/* entropy_bytes - n of them, at most 256. Any thread; a system call. */
void entropy_bytes(void *ret, size_t n);
