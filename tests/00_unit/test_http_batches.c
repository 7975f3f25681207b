/* What is due at once leaves in batches, between which others have their turn, however much the
 * socket takes. */
#include "base/strbuf.h"
#include "http/http_conn.h"
#include "http/http_cut.h"
#include "http/http_out.h"
#include "os/loop.h"

#include "support/http_rig.h"
#include "support/unit.h"

#include <nghttp2/nghttp2.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ANSWER_BYTES  4000
#define LEAST_ANSWERS (HTTP_OUT_BYTES / 2 / ANSWER_BYTES) /* of a batch */
#define MOST_ANSWERS  (HTTP_OUT_BYTES / ANSWER_BYTES + 1)

static const struct http_conn *conn; /* that has much to send */
static void note_left(struct loop_task *t);
static struct loop_task others = {.run = note_left};
static atomic_uint left_before_others; /* of its answers */

static void note_left(struct loop_task *t)
{
    (void)t;
    atomic_store(&left_before_others, conn->in_flight);
}

static unsigned answer_beside_others(void)
{
    list_init(&others.node);
    conn = http_rig_later_conn();
    http_rig_answer_later();
    loop_later(loop_current(), LOOP_PHASE_SPARE, &others);
    return 0;
}

static unsigned answer_and_cut(void)
{
    struct http_conn *c = http_rig_later_conn();
    http_rig_answer_later();
    return http_cut_conn(c);
}

static char echoed[ANSWER_BYTES + 1];

/* A question that is answered later, and so many behind it that wait for that. */
static int send_pipeline(struct http_rig *r, unsigned behind)
{
    int fd = http_rig_dial(r);
    struct strbuf text = STRBUF_INIT;
    memset(echoed, 'x', ANSWER_BYTES);
    strbuf_puts(&text, "GET /later HTTP/1.1\r\n\r\n");
    for (unsigned i = 0; i < behind; i++)
        strbuf_printf(&text, "POST /echo HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s", ANSWER_BYTES,
                      echoed);
    http_rig_send(fd, strbuf_str(&text));
    strbuf_fini(&text);
    while (http_rig_run(http_rig_in_flight) < behind + 1)
        ;
    return fd;
}

static void expect_pipeline(int fd, unsigned behind)
{
    http_rig_expect(fd, 200, "later");
    for (unsigned i = 0; i < behind; i++)
        http_rig_expect(fd, 200, echoed);
}

static void answers_of_a_pipeline_leave_turns_to_others(void **state)
{
    (void)state;
    enum { COUNT = HTTP_CONN_MAX_IN_FLIGHT - 1 };
    struct http_rig *r = http_rig_new(0);
    int fd = send_pipeline(r, COUNT);
    http_rig_run(answer_beside_others);
    expect_pipeline(fd, COUNT);
    assert_in_range(COUNT + 1 - atomic_load(&left_before_others), LEAST_ANSWERS, MOST_ANSWERS);
    close(fd);
    http_rig_free(r);
}

/* ---- A client of HTTP/2 that takes everything */

struct h2_client {
    nghttp2_session *session;
    int fd;
    size_t received; /* bytes of bodies */
    unsigned ended;  /* streams without an error */
};

static int on_client_chunk(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data,
                           size_t len, void *user)
{
    (void)session;
    (void)flags;
    (void)id;
    (void)data;
    ((struct h2_client *)user)->received += len;
    return 0;
}

static int on_client_close(nghttp2_session *session, int32_t id, uint32_t error, void *user)
{
    (void)session;
    (void)id;
    ((struct h2_client *)user)->ended += !error;
    return 0;
}

/* The source is the number of bytes that are left. */
static ssize_t read_client_body(nghttp2_session *session, int32_t id, uint8_t *to, size_t cap,
                                uint32_t *flags, nghttp2_data_source *source, void *user)
{
    (void)session;
    (void)id;
    (void)user;
    int n = source->fd < (int)cap ? source->fd : (int)cap;
    memset(to, 'x', (size_t)n);
    source->fd -= n;
    if (!source->fd)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return n;
}

/* Sends what it may, and takes what is there. */
static void client_turn(struct h2_client *c)
{
    const uint8_t *out;
    ssize_t n;
    while ((n = nghttp2_session_mem_send(c->session, &out)) > 0)
        assert_int_equal(write(c->fd, out, (size_t)n), n);
    assert_int_equal(n, 0);
    uint8_t in[65536];
    n = recv(c->fd, in, sizeof(in), MSG_DONTWAIT);
    if (n > 0)
        assert_int_equal(nghttp2_session_mem_recv(c->session, in, (size_t)n), n);
}

static void client_ask_later(struct h2_client *c)
{
    nghttp2_nv head[] = {{(uint8_t *)":method", (uint8_t *)"POST", 7, 4, 0},
                         {(uint8_t *)":path", (uint8_t *)"/later-echo", 5, 11, 0},
                         {(uint8_t *)":scheme", (uint8_t *)"http", 7, 4, 0},
                         {(uint8_t *)":authority", (uint8_t *)"here", 10, 4, 0}};
    nghttp2_data_provider body = {.source.fd = ANSWER_BYTES, .read_callback = read_client_body};
    assert_true(nghttp2_submit_request(c->session, NULL, head, 4, &body, NULL) > 0);
}

static void begin_client(struct h2_client *c, int fd)
{
    nghttp2_session_callbacks *callbacks;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_client_chunk);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_client_close);
    *c = (struct h2_client){.fd = fd};
    assert_int_equal(nghttp2_session_client_new(&c->session, callbacks, c), 0);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_settings_entry window = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 8 << 20};
    nghttp2_submit_settings(c->session, NGHTTP2_FLAG_NONE, &window, 1);
    nghttp2_submit_window_update(c->session, NGHTTP2_FLAG_NONE, 0, 8 << 20);
}

/* Asks on so many streams, which are all answered later. */
static void send_streams(struct h2_client *c, struct http_rig *r, unsigned count)
{
    begin_client(c, http_rig_dial(r));
    for (unsigned i = 0; i < count; i++)
        client_ask_later(c);
    do
        client_turn(c);
    while (http_rig_run(http_rig_count_later) < count);
}

static void expect_streams(struct h2_client *c, unsigned count)
{
    while (c->ended < count)
        client_turn(c);
    assert_int_equal(c->received, count * ANSWER_BYTES);
    nghttp2_session_del(c->session);
    close(c->fd);
}

static void answers_of_many_streams_leave_turns_to_others(void **state)
{
    (void)state;
    enum { STREAMS = 200 };
    struct http_rig *r = http_rig_new(0);
    struct h2_client c;
    send_streams(&c, r, STREAMS);
    http_rig_run(answer_beside_others);
    expect_streams(&c, STREAMS);
    assert_in_range(STREAMS - atomic_load(&left_before_others), LEAST_ANSWERS, MOST_ANSWERS);
    http_rig_free(r);
}

enum { CUT = 50 }; /* answers of more than one batch, which a socket takes at once */

/* What is due is sent before a connection is cut, however many batches it is; nothing that came
 * behind is begun. */
static void a_pipeline_that_is_cut_has_what_is_due(void **state)
{
    (void)state;
    struct http_rig *r = http_rig_new(0);
    int fd = send_pipeline(r, CUT);
    assert_int_equal(http_rig_run(answer_and_cut), 0);
    expect_pipeline(fd, CUT);
    http_rig_expect_end(fd);
    http_rig_free(r);
}

static void streams_that_are_cut_have_what_is_due(void **state)
{
    (void)state;
    struct http_rig *r = http_rig_new(0);
    struct h2_client c;
    send_streams(&c, r, CUT);
    assert_int_equal(http_rig_run(answer_and_cut), 0);
    expect_streams(&c, CUT);
    http_rig_free(r);
}

UNIT_MAIN(UNIT(answers_of_a_pipeline_leave_turns_to_others),
          UNIT(answers_of_many_streams_leave_turns_to_others),
          UNIT(a_pipeline_that_is_cut_has_what_is_due), UNIT(streams_that_are_cut_have_what_is_due))
