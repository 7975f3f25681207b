#pragma once
/* The failures that came last, for people: requests that were answered with an error, and models
 * that did not load, each with its reason and how often it came. Nothing is kept, and no memory
 * taken, before the first.
 *
 * The reasons are those that clients and the log get. They quote what clients sent and what
 * backends say, so who sees them must be allowed to see the log. */
#include <stddef.h>
#include <stdint.h>

/* Different failures that are kept; of one model, or of all models that are not there together.
 * One more takes the place of the oldest, so that no model and no client crowds out the others. */
#define RECENT_MOST     64u
#define RECENT_OF_MODEL 8u

/* Longer ones are cut. */
#define RECENT_MODEL_BYTES 128u
#define RECENT_TEXT_BYTES  512u

enum recent_kind {
    RECENT_REQUEST,
    RECENT_LOAD,
};

struct recent_failure {
    enum recent_kind kind;
    uint64_t count;                 /* how often the same failure came */
    uint64_t first_ms, last_ms;     /* when, since 1970 */
    uint64_t order;                 /* of the last one; rises */
    char model[RECENT_MODEL_BYTES]; /* "" = of none that is there */
    char text[RECENT_TEXT_BYTES];
};

struct recent;

struct recent *recent_new(void);
void recent_free(struct recent *r); /* NULL is fine */

/* recent_request - a request was answered with an error.
 * recent_load - a model did not load.
 * r        NULL = keep nothing
 * model    of a request: see front_metrics_model_id; 0 = none that is there. Of a load: its name;
 *          "" = none that is there
 * version  0 = the model as a whole
 * Any thread; the lock is held while it is compared with those that are kept. */
void recent_request(struct recent *r, uint32_t model, const char *text);
void recent_load(struct recent *r, const char *model, int64_t version, const char *text);

/* recent_noted - how many failures there were so far. recent_read - those that are kept, the
 * newest first.
 * ret      array that the caller frees (mem_free); NULL if there are none
 * returns  its length. Any thread */
uint64_t recent_noted(struct recent *r);
size_t recent_read(struct recent *r, struct recent_failure **ret);
