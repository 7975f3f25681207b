#pragma once
/* The labels of the classes of an output: a file in the model's directory, one label per line.
 * Immutable. */
#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

/* The largest label file, and the longest label. */
#define LABELS_MAX_BYTES ((size_t)64 << 20)
#define LABELS_MAX_LINE  ((size_t)64 << 10)

struct labels;

/* labels_parse - make the table from the bytes of a file; label i is line i, from 0.
 * text    copied; a line ends at LF or CR LF; the last one need not end
 * file    used in messages
 * errors  INVALID_ARG over the limits, or for a NUL byte in a label */
struct err *labels_parse(const char *text, size_t len, const char *file, struct labels **ret);

/* labels_ref - take a reference.
 * labels_free - drop a reference; NULL is fine. Any thread. */
struct labels *labels_ref(struct labels *l);
void labels_free(struct labels *l);

/* labels_count - the number of labels.
 * labels_get - the label of an index; NULL after the last. Any thread. */
uint32_t labels_count(const struct labels *l);
const char *labels_get(const struct labels *l, uint64_t index);
