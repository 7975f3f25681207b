#include "web/token.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

/* A token is replaced so long before it ends, or at a fourth of a short life. */
#define RENEW_BEFORE_SECS 300u

void token_init(struct token *t, struct err *(*fetch)(void *, void *, char **, uint64_t *),
                void *owner)
{
    *t = (struct token){.fetch = fetch, .owner = owner};
    mutex_init(&t->lock, MUTEX_RANK_LEAF);
    mutex_cond_init(&t->changed);
}

void token_fini(struct token *t)
{
    mutex_cond_fini(&t->changed);
    mutex_fini(&t->lock);
    err_free(t->failed);
    mem_free(t->text);
}

/* Lock held, but not while it is fetched. */
static struct err *renew(struct token *t, void *session)
{
    char *text = NULL;
    uint64_t secs = 0;
    t->busy = true;
    mutex_unlock(&t->lock);
    struct err *e = t->fetch(t->owner, session, &text, &secs);
    mutex_lock(&t->lock);
    t->busy = false;
    t->rounds++;
    err_free(t->failed);
    t->failed = err_copy(e);
    mutex_cond_broadcast(&t->changed);
    if (e)
        return e;
    uint64_t early = secs / 4 < RENEW_BEFORE_SECS ? secs / 4 : RENEW_BEFORE_SECS;
    mem_free(t->text);
    t->text = text;
    t->have = true;
    t->ends = secs ? clock_now_ns() + TIME_S(secs - early) : TIME_NEVER;
    return NULL;
}

struct err *token_get(struct token *t, void *session, char **ret)
{
    struct err *e = NULL;
    mutex_lock(&t->lock);
    uint64_t rounds = t->rounds;
    while (t->busy)
        mutex_cond_wait(&t->changed, &t->lock);
    bool good = t->have && clock_now_ns() < t->ends;
    if (!good && t->rounds != rounds && t->failed)
        e = err_copy(t->failed); /* the one that was waited for: a second one would take as long */
    else if (!good)
        e = renew(t, session);
    if (!e)
        *ret = t->text ? mem_strdup(t->text) : NULL;
    mutex_unlock(&t->lock);
    return e;
}

bool token_refused(struct token *t)
{
    mutex_lock(&t->lock);
    bool another = t->busy || t->text;
    if (!t->busy && t->text)
        t->have = false;
    mutex_unlock(&t->lock);
    return another;
}

struct err *token_read(const char *json, char **ret_text, uint64_t *ret_secs)
{
    yyjson_doc *doc = yyjson_read(json, strlen(json), 0);
    yyjson_val *root = yyjson_doc_get_root(doc);
    const char *text = yyjson_get_str(yyjson_obj_get(root, "access_token"));
    yyjson_val *secs = yyjson_obj_get(root, "expires_in"); /* a number, or one in quotes */
    struct err *e = NULL;
    if (text && *text) {
        uint64_t n =
            yyjson_is_str(secs) ? strtoull(yyjson_get_str(secs), NULL, 10) : yyjson_get_uint(secs);
        *ret_text = mem_strdup(text);
        *ret_secs = n < 10 ? 10 : n > 86400 ? 86400 : n;
    } else {
        e = err_new(STATUS_UNAVAILABLE, "the endpoint for tokens answers without one");
    }
    yyjson_doc_free(doc);
    return e;
}
