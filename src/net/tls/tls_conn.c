#include "net/tls/tls_conn.h"

#include "base/budget.h"
#include "base/log.h"
#include "base/mem.h"
#include "os/sock.h"
#include "net/tls/tls.h"

#include <string.h>
#include <sys/epoll.h>

#define PEER_BYTES 64

/* The most bytes decrypted at a time, because other connections wait meanwhile. */
#define READ_AT_ONCE ((size_t)512 << 10)

/* How many bytes of a client without TLS are dropped, so that it sees the answer. */
#define DISCARD_BYTES ((size_t)65536)

static bool shakes(const struct tls_conn *t)
{
    return t->session && !list_empty(&t->node);
}

static void shaken(struct tls_conn *t)
{
    list_remove(&t->node);
    t->home->count--;
}

static void tls_conn_on_timer(struct loop_timer *timer)
{
    struct tls_home *h = LIST_ITEM(timer, struct tls_home, timer);
    while (!list_empty(&h->shaking)) {
        struct tls_conn *oldest = LIST_ITEM(h->shaking.next, struct tls_conn, node);
        bool late = oldest->begun + TLS_CONN_PATIENCE <= loop_now(h->loop);
        if (!late && h->count <= TLS_CONN_SHAKING) {
            loop_timer_set(h->loop, timer, oldest->begun + TLS_CONN_PATIENCE);
            return;
        }
        if (late)
            LOG_VERBOSE(1, "TLS: a client of %s does not end its handshake", tls_front(h->tls));
        else
            LOG_WARN("TLS: more than %u clients of %s are in their handshake: the oldest is given "
                     "up",
                     TLS_CONN_SHAKING, tls_front(h->tls));
        h->give_up(oldest);
    }
}

void tls_conn_home_init(struct tls_home *h)
{
    list_init(&h->shaking);
    h->timer = (struct loop_timer)LOOP_TIMER_INIT(tls_conn_on_timer);
}

void tls_conn_home_fini(struct tls_home *h)
{
    if (h->timer.heap_index)
        loop_timer_clear(h->loop, &h->timer);
}

struct tls_conn *tls_conn_new(struct tls_home *h, int fd, void *owner)
{
    struct tls_conn *t = MEM_NEW(struct tls_conn);
    *t = (struct tls_conn){.home = h, .fd = fd, .owner = owner};
    list_init(&t->node);
    return t;
}

void tls_conn_free(struct tls_conn *t)
{
    if (!t)
        return;
    if (shakes(t))
        shaken(t);
    if (t->session) {
        t->abi->session_free(t->session);
        if (t->spared)
            budget_unspare(TLS_CONN_BYTES);
        else
            budget_release(TLS_CONN_BYTES);
    }
    mem_free(t);
}

/* Answers a client without TLS in plain text, if the front end has such a text. */
static ssize_t refuse_plain(struct tls_conn *t)
{
    char peer[PEER_BYTES];
    sock_peer(t->fd, peer, sizeof(peer));
    LOG_WARN("TLS: %s does not speak TLS, which the port of %s wants", peer,
             tls_front(t->home->tls));
    if (t->home->plain) {
        struct iovec piece = {(void *)(uintptr_t)t->home->plain, strlen(t->home->plain)};
        sock_discard(t->fd, DISCARD_BYTES);
        sock_write(t->fd, &piece, 1);
    }
    return -2;
}

static bool tls_conn_has_room(struct tls_conn *t)
{
    if (budget_charge(TLS_CONN_BYTES))
        return true;
    t->spared = budget_spare(TLS_CONN_BYTES);
    if (!t->spared)
        LOG_WARN("TLS: a connection to %s is closed: no room for it within --memory-budget",
                 tls_front(t->home->tls));
    return t->spared;
}

/* Begins the session with the client's first bytes. Returns 1 if it has begun; else as
 * sock_read. */
static ssize_t begin_session(struct tls_conn *t)
{
    struct tls_home *h = t->home;
    unsigned char first;
    ssize_t got = sock_peek(t->fd, &first, 1);
    if (got <= 0)
        return got;
    if (first != TLS_CONN_HANDSHAKE)
        return refuse_plain(t);
    if (!tls_conn_has_room(t))
        return -2;
    t->session = tls_session(h->tls, t->fd, &t->abi);
    if (!t->session) {
        if (t->spared)
            budget_unspare(TLS_CONN_BYTES);
        else
            budget_release(TLS_CONN_BYTES);
        return -2;
    }
    t->begun = loop_now(h->loop);
    list_append(&h->shaking, &t->node);
    if (h->count++ >= TLS_CONN_SHAKING)
        loop_timer_set(h->loop, &h->timer, t->begun);
    else if (!h->timer.heap_index)
        loop_timer_set(h->loop, &h->timer, t->begun + TLS_CONN_PATIENCE);
    return 1;
}

/* Handles the result of a call: the handshake may have ended, or the session failed. */
static ssize_t look_at(struct tls_conn *t, ssize_t result)
{
    if (t->session->established && shakes(t))
        shaken(t);
    if (result == -2 && t->session->fault) {
        char peer[PEER_BYTES];
        sock_peer(t->fd, peer, sizeof(peer));
        LOG_INFO("TLS: the connection of %s to %s is closed: %s", peer, tls_front(t->home->tls),
                 t->session->fault);
    }
    return result;
}

ssize_t tls_conn_read(struct tls_conn *t, void *to, size_t n)
{
    ssize_t begun = t->session ? 1 : begin_session(t);
    if (begun <= 0)
        return begun;
    return look_at(t, t->abi->read(t->session, to, n < READ_AT_ONCE ? n : READ_AT_ONCE));
}

ssize_t tls_conn_read_pieces(struct tls_conn *t, const struct iovec *pieces, int count)
{
    size_t total = 0;
    for (int i = 0; i < count; i++) {
        ssize_t got = tls_conn_read(t, pieces[i].iov_base, pieces[i].iov_len);
        if (got <= 0)
            return total ? (ssize_t)total : got;
        total += (size_t)got;
        if ((size_t)got < pieces[i].iov_len)
            break;
    }
    return (ssize_t)total;
}

ssize_t tls_conn_write(struct tls_conn *t, const struct iovec *pieces, int count)
{
    return t->session ? look_at(t, t->abi->write(t->session, pieces, count)) : 0;
}

bool tls_conn_established(const struct tls_conn *t)
{
    return t->session && t->session->established;
}

void tls_conn_goodbye(struct tls_conn *t)
{
    if (t->session)
        t->abi->goodbye(t->session);
}

void tls_conn_note(int fd, const char *front)
{
    char peer[PEER_BYTES];
    sock_peer(fd, peer, sizeof(peer));
    LOG_WARN("%s speaks TLS to a port that does not: see --%s-use-ssl", peer, front);
}

uint32_t tls_conn_events(const struct tls_conn *t, uint32_t wanted)
{
    const struct tls_abi_session *s = t->session;
    if (!tls_conn_established(t)) /* before that only the handshake writes */
        wanted &= ~(uint32_t)EPOLLOUT;
    if (s && (s->wants_out || (s->holds && (wanted & EPOLLIN))))
        wanted |= EPOLLOUT;
    return wanted;
}

uint32_t tls_conn_ready(const struct tls_conn *t, uint32_t events)
{
    const struct tls_abi_session *s = t->session;
    bool goes_on = s && (events & EPOLLOUT) && (s->wants_out || s->holds);
    return goes_on ? events | EPOLLIN : events;
}
