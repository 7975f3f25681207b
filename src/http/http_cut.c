#include "http/http_cut.h"

#include "http/http2_conn.h"
#include "http/http_conn.h"
#include "http/http_event.h"
#include "http/http_exchange.h"
#include "http/http_out.h"
#include "os/sock.h"

static struct err *cut_error(void)
{
    return err_new(STATUS_UNAVAILABLE, "the server is stopping");
}

/* Whoever works on x will still answer x, so another exchange stands in for it. */
static struct http_exchange *stand_in(struct http_exchange *x)
{
    struct http_exchange *y = http_exchange_before(x);
    y->keep_alive = false;
    y->head_only = x->head_only;
    y->explicit_keep_alive = x->explicit_keep_alive;
    y->cors = x->cors;
    y->route = x->route;
    y->model = x->model;
    return y;
}

/* The head is out, or stands in an event before x. */
static void end_stream_of(struct http_exchange *x)
{
    if (!x->given_up)
        http_event_error(x, cut_error());
    struct http_exchange *end = stand_in(x);
    end->part = HTTP_PART_END;
    end->begun = true;
    http_event_end(end);
}

static void answer_for(struct http_exchange *x)
{
    struct http_exchange *y = stand_in(x);
    y->counted = x->counted;
    y->access = x->access;
    x->counted = false;
    x->access = NULL;
    http_exchange_error(y, cut_error());
}

unsigned http_cut_line(struct http_line *l)
{
    struct http_exchange *first = NULL;
    unsigned count = 0;
    LIST_EACH (node, &l->exchanges) {
        struct http_exchange *x = LIST_ITEM(node, struct http_exchange, node);
        if (x->done)
            continue;
        x->cut = true;
        first = first ? first : x;
        count++;
    }
    if (first && first->begun)
        end_stream_of(first);
    else if (first)
        answer_for(first);
    return count;
}

unsigned http_cut_conn(struct http_conn *c)
{
    unsigned count = 0;
    if (!c->dead && c->h2) {
        count = http2_conn_cut(c);
    } else if (!c->dead) {
        count = http_cut_line(&c->line);
        http_out_flush_all(c);
    }
    if (!c->dead)
        sock_discard(c->fd.fd, SOCK_DISCARD_BYTES);
    http_conn_kill(c);
    return count;
}
