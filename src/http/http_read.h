#pragma once
/* Reads messages from a connection and gives them to the service of its port. Worker's thread
 * only. */
#include <stdbool.h>
#include <stddef.h>

struct http_conn;

/* http_read_some - read what the socket has: whole messages are served, the beginning of one is
 * kept. The connection may be dead afterwards. */
void http_read_some(struct http_conn *c);

/* http_read_piece - a piece of a chunked body came: http1_piece_fn. */
bool http_read_piece(void *conn, const char *bytes, size_t len);

/* http_read_pending - read once more before the connection ends, if it takes messages. */
void http_read_pending(struct http_conn *c);

/* http_read_no_more - the last message was read, or the stream cannot be understood any more:
 * later bytes are dropped. */
void http_read_no_more(struct http_conn *c);

/* http_read_turn - a new turn has begun: an answer that was put off may be made now. The
 * connection may be dead afterwards. */
void http_read_turn(struct http_conn *c);

/* http_read_resume - there is room for more requests: continue with bytes that were kept. */
void http_read_resume(struct http_conn *c);
