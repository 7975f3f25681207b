#pragma once
/* A file of traces, and those with a number beside it. A thread of its own writes it, which is
 * there while there is something to write. The file is an array of JSON, whole after every write;
 * what cannot be written is thrown away, which one line of the log says. */
#include <stdbool.h>

struct list;
struct tracing_file;

/* tracing_file_new - nothing is opened before there is a trace. path: borrowed. */
struct tracing_file *tracing_file_new(const char *path);

/* tracing_file_push - have records written (tracing_record.node), which are taken over.
 * numbered  into PATH.0, PATH.1, ...: each call one file; else behind what PATH has, which was
 *           emptied when it was written first
 * Does not block. Any thread, without locks of rank THREAD or above. */
void tracing_file_push(struct tracing_file *f, struct list *records, bool numbered);

/* tracing_file_free - what was pushed is written first. Blocks. NULL is fine. */
void tracing_file_free(struct tracing_file *f);
