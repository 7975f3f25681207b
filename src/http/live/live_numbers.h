#pragma once
/* The numbers that move on the live page, as JSON: small enough to be asked for every second or
 * two, with many models too. */
#include <stddef.h>

struct server;
struct table_view;

/* The most versions that are told one by one, besides those of the model that is asked for; the
 * totals are always those of all. */
#define LIVE_NUMBERS_ROWS 2000u

/* live_numbers_new - the text, which the caller frees (mem_free). On the thread of the view.
 * model  of len bytes, percent-encoded: latencies and batches are those of this model alone;
 *        len 0 = of all */
char *live_numbers_new(struct server *s, struct table_view *view, const char *model, size_t len,
                       size_t *ret_len);
