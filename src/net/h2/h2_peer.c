#include "net/h2/h2_peer.h"

#include "base/budget.h"
#include "base/log.h"
#include "net/h2/h2_out.h"

#include <string.h>

/* The most bytes in a frame of the server, if the client accepts frames that large. */
#define MAX_DATA_BYTES     262144u
#define DEFAULT_DATA_BYTES 16384u

#define STREAMS_STEP 4u /* so few that they leave a part of what is free for an account */

static const uint8_t goodbye_ping[8] = "goodbye";

void h2_peer_init(struct h2_peer *p, const char *protocol)
{
    *p = (struct h2_peer){.protocol = protocol};
    h2_frames_init(&p->frames);
}

/* A thousand streams that were reset are fine, then two hundred a second (CVE-2023-44487). */
void h2_peer_options(nghttp2_option *o)
{
    nghttp2_option_set_no_auto_window_update(o, 1);
    nghttp2_option_set_no_closed_streams(o, 1);
    nghttp2_option_set_max_settings(o, 32);
    nghttp2_option_set_max_outbound_ack(o, 1000);
    nghttp2_option_set_stream_reset_rate_limit(o, 1000, 200);
}

void h2_peer_session_free(nghttp2_session *session)
{
    if (!session)
        return;
    nghttp2_session_del(session);
    budget_release(H2_PEER_SESSION_BYTES);
}

/* The library ends the connection of a client that opens a stream too many, which is to be
 * refused alone (RFC 9113, 5.1.2). So it knows of no limit, and `announce` tells the client. */
#define NO_LIMIT INT32_MAX

nghttp2_session *h2_peer_session(struct h2_peer *p, const struct h2_peer_limits *limits,
                                 const nghttp2_session_callbacks *callbacks,
                                 const nghttp2_option *options, void *user)
{
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, NO_LIMIT},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, limits->window_bytes},
        {NGHTTP2_SETTINGS_MAX_FRAME_SIZE, limits->frame_bytes},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, limits->header_bytes},
        {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
    };
    nghttp2_session *made;
    if (nghttp2_session_server_new2(&made, callbacks, user, options) != 0)
        return NULL;
    p->most = limits->streams;
    budget_charge_anyway(H2_PEER_SESSION_BYTES);
    if (nghttp2_submit_settings(made, NGHTTP2_FLAG_NONE, settings,
                                sizeof(settings) / sizeof(*settings)) == 0 &&
        nghttp2_session_set_local_window_size(made, NGHTTP2_FLAG_NONE, 0, INT32_MAX) == 0)
        return made;
    h2_peer_session_free(made);
    return NULL;
}

static void put_u32(uint8_t *to, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(v >> (24 - 8 * i));
}

#define SETTING_BYTES 6u /* in a frame: its name in two, its value in four */

/* Puts the number of streams into the session's SETTINGS, which were just copied. */
static void announce(struct h2_peer *p, uint8_t *frame, size_t n)
{
    if (frame[3] != NGHTTP2_SETTINGS || (frame[4] & NGHTTP2_FLAG_ACK))
        return;
    p->announced = true;
    for (size_t at = H2_PEER_HEAD_BYTES; at + SETTING_BYTES <= n; at += SETTING_BYTES)
        if (frame[at] == 0 && frame[at + 1] == NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS)
            put_u32(frame + at + 2, p->most);
}

bool h2_peer_take(struct h2_peer *p, nghttp2_session *session, const void *data, size_t n)
{
    enum h2_frames_result frames = h2_frames_take(&p->frames, data, n);
    ssize_t used =
        frames == H2_FRAMES_FINE
            ? nghttp2_session_mem_recv(session, data, n)
            : h2_peer_expel(p, session,
                            frames == H2_FRAMES_TRIFLES ? "too_many_trifles" : "too_much_metadata");
    if (used < 0 && !p->expelled)
        LOG_VERBOSE(1, "%s: closing a connection: %s", p->protocol, nghttp2_strerror((int)used));
    return used >= 0;
}

bool h2_peer_gather(struct h2_peer *p, nghttp2_session *session, struct h2_out *out,
                    struct h2_batch *b)
{
    while (h2_out_has_room(b)) {
        const uint8_t *frame;
        ssize_t n = nghttp2_session_mem_send(session, &frame);
        if (n < 0)
            return false;
        if (n == 0)
            break;
        uint8_t *copy = b->bytes + b->used;
        h2_out_copy(out, b, frame, (size_t)n);
        if (!p->announced)
            announce(p, copy, (size_t)n);
    }
    return true;
}

ssize_t h2_peer_data_bytes(uint64_t left, int32_t session_window, int32_t stream_window,
                           uint32_t frame_bytes)
{
    uint32_t most = frame_bytes < MAX_DATA_BYTES ? frame_bytes : MAX_DATA_BYTES;
    if (most > DEFAULT_DATA_BYTES && left < most)
        most = left > DEFAULT_DATA_BYTES ? (uint32_t)left : DEFAULT_DATA_BYTES;
    int32_t window = session_window < stream_window ? session_window : stream_window;
    return window < (int32_t)most ? window : (ssize_t)most;
}

int h2_peer_received(struct h2_peer *p, nghttp2_session *session, const nghttp2_frame *frame)
{
    if (frame->hd.type == NGHTTP2_SETTINGS) {
        p->greeted = true;
        if (++p->settings > H2_PEER_SETTINGS_MAX)
            return h2_peer_expel(p, session, "too_many_settings");
    } else if (p->retiring && frame->hd.type == NGHTTP2_PING &&
               (frame->hd.flags & NGHTTP2_FLAG_ACK) &&
               memcmp(frame->ping.opaque_data, goodbye_ping, sizeof(goodbye_ping)) == 0) {
        h2_peer_say_goodbye(p, session);
    }
    return 0;
}

int h2_peer_sent(struct h2_peer *p, nghttp2_session *session, const nghttp2_frame *frame)
{
    /* Pings overtake waiting frames, so this one is only submitted after the GOAWAY was sent. */
    if (frame->hd.type == NGHTTP2_GOAWAY && p->retiring && !p->said_goodbye)
        nghttp2_submit_ping(session, NGHTTP2_FLAG_NONE, goodbye_ping);
    return 0;
}

bool h2_peer_full(const struct h2_peer *p)
{
    return p->streams >= p->most;
}

int h2_peer_refuse(struct h2_peer *p, nghttp2_session *session, int32_t id)
{
    if (++p->frames.trifles > H2_FRAMES_TRIFLES_MAX)
        return h2_peer_expel(p, session, "too_many_streams");
    nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, id, NGHTTP2_REFUSED_STREAM);
    return 0;
}

/* The account is charged in steps of several streams, so that calls which come one by one cost
 * nothing. */
void h2_peer_stream(struct h2_peer *p, struct budget_account *account, size_t bytes)
{
    if (p->streams++ < p->streams_held)
        return;
    p->streams_held += STREAMS_STEP;
    budget_hold(account, STREAMS_STEP * bytes);
}

void h2_peer_stream_gone(struct h2_peer *p, struct budget_account *account, size_t bytes)
{
    if (--p->streams + 2 * STREAMS_STEP > p->streams_held)
        return;
    p->streams_held -= STREAMS_STEP;
    budget_drop(account, STREAMS_STEP * bytes);
}

void h2_peer_streams_gone(struct h2_peer *p, struct budget_account *account, size_t bytes)
{
    budget_drop(account, p->streams_held * bytes);
    p->streams_held = 0;
}

void h2_peer_of_use(struct h2_peer *p)
{
    p->settings = 0;
    p->frames.trifles = 0;
}

/* Returns an error, which ends the session's reading and so the connection. */
int h2_peer_expel(struct h2_peer *p, nghttp2_session *session, const char *why)
{
    LOG_VERBOSE(1, "%s: closing a connection: %s", p->protocol, why);
    p->expelled = true;
    nghttp2_submit_goaway(session, NGHTTP2_FLAG_NONE,
                          nghttp2_session_get_last_proc_stream_id(session),
                          NGHTTP2_ENHANCE_YOUR_CALM, (const uint8_t *)why, strlen(why));
    return NGHTTP2_ERR_CALLBACK_FAILURE;
}

void h2_peer_retire(struct h2_peer *p, nghttp2_session *session)
{
    p->retiring = true;
    if (session)
        nghttp2_submit_shutdown_notice(session);
}

void h2_peer_say_goodbye(struct h2_peer *p, nghttp2_session *session)
{
    if (p->said_goodbye)
        return;
    p->said_goodbye = true;
    nghttp2_submit_goaway(session, NGHTTP2_FLAG_NONE,
                          nghttp2_session_get_last_proc_stream_id(session), NGHTTP2_NO_ERROR, NULL,
                          0);
}

bool h2_peer_wants(const struct h2_peer *p, nghttp2_session *session)
{
    bool awaited = p->retiring && !p->said_goodbye;
    return awaited || nghttp2_session_want_read(session) || nghttp2_session_want_write(session);
}
