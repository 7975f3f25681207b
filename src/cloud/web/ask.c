#include "cloud/web/ask.h"

#include "base/mem.h"
#include "cloud/web/call.h"

#define MAX_BYTES ((size_t)256 << 10)
#define DIRECT_MS 1000u

/* An endpoint that may not exist: a machine's metadata service connects, but its answers get lost
 * on the way into a container. */
#define MAYBE_STALL_SECS 5u

static struct err *ask_build(void *owner, void *session, struct call_request *r)
{
    (void)session;
    const struct ask *a = owner;
    r->method = a->method;
    r->direct = a->direct;
    strbuf_puts(&r->url, a->url);
    for (size_t i = 0; i < sizeof(a->headers) / sizeof(a->headers[0]); i++)
        if (a->headers[i])
            call_header(r, "%s", a->headers[i]);
    if (a->body)
        strbuf_puts(&r->body, a->body);
    return NULL;
}

struct err *ask_run(struct call_net *net, void *session, const struct ask *a, char **ret)
{
    struct ask copy = *a;
    struct call c = {.what = "fetching credentials",
                     .build = ask_build,
                     .max_body = MAX_BYTES,
                     .owner = &copy,
                     .maybe = a->maybe,
                     .connect_ms = a->direct ? DIRECT_MS : 0,
                     .stall_secs = a->maybe ? MAYBE_STALL_SECS : 0};
    struct err *e = call_run(net, session, &c);
    if (!e)
        *ret = mem_strdup(strbuf_str(&c.answer.body));
    call_fini(&c);
    return e;
}
