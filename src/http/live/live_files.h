#pragma once
/* The files of the live page, in share/nereid/ beside the library. They are read by a helper
 * whenever a browser asks for one: who never opens the page pays no memory for it. */
#include <stdbool.h>
#include <stddef.h>

struct http_exchange;
struct live_file;

/* live_files_find - the file that a path means; NULL = none. Any thread. */
const struct live_file *live_files_find(const char *path, size_t len);

/* live_files_answer - answer with the file, later, on this loop. Worker's thread only. */
void live_files_answer(struct http_exchange *x, const struct live_file *f);
