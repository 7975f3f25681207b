#pragma once
/* What was measured as one HTML file: tables and plots, with all that they need in it. The page is
 * installed beside the library (web/report), and so is the library that draws (uPlot). */
#include "base/err.h"
#include "base/strbuf.h"
#include "bench/bench_load.h"
#include "bench/bench_options.h"

#include <stdint.h>

/* bench_html_page - read the page, with the library in it.
 * errors  NOT_FOUND: it was installed without it */
struct err *bench_html_page(struct strbuf *ret);

/* bench_html_fill - the page with these results. Pure. */
void bench_html_fill(const struct strbuf *page, const struct bench_options *o,
                     const struct bench_result *results, uint32_t count, struct strbuf *to);
