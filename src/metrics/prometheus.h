#pragma once
/* Writing the Prometheus text exposition format, version 0.0.4. Pure.
 * source  https://prometheus.io/docs/instrumenting/exposition_formats/ */
#include "base/strbuf.h"

#include <stddef.h>
#include <stdint.h>

/* prometheus_family - the lines "# HELP" and "# TYPE" that go before the samples of a family. */
void prometheus_family(struct strbuf *out, const char *name, const char *type, const char *help);

/* prometheus_label - append name="value" to a set of labels, after a comma unless the set is
 * empty. The value is escaped; what is not UTF-8 in it is shown as U+FFFD. name must be a label
 * name (prometheus_label_name). */
void prometheus_label(struct strbuf *labels, const char *name, const char *value);

/* prometheus_label_name - append `name` made into (the rest of) a label name: characters that
 * may not stand there become '_'. */
void prometheus_label_name(struct strbuf *out, const char *name);

/* prometheus_sample - one line: name, suffix ("" or e.g. "_bucket"), the labels in braces unless
 * "", and the value. */
void prometheus_sample(struct strbuf *out, const char *name, const char *suffix, const char *labels,
                       uint64_t value);

/* prometheus_parts - `whole` and `part` / `scale` as a decimal number, without zeros at its end;
 * scale a power of ten. */
void prometheus_parts(struct strbuf *out, uint64_t whole, uint64_t part, uint64_t scale);

/* prometheus_sample_parts - the same with a value of `whole` and `part` / `scale`, scale a power
 * of ten. */
void prometheus_sample_parts(struct strbuf *out, const char *name, const char *suffix,
                             const char *labels, uint64_t whole, uint64_t part, uint64_t scale);
