#pragma once
/* From the bytes of a connection to messages for the service of its port. Worker's thread only. */
struct http_conn;

/* http_read_some - what the socket has: whole messages are served, the beginning of one is kept.
 * The connection may be dead afterwards. */
void http_read_some(struct http_conn *c);

/* http_read_pending - the same of a connection that takes messages, once more before it ends. */
void http_read_pending(struct http_conn *c);

/* http_read_no_more - the last message of the connection was read, or what comes cannot be
 * understood any more: it is dropped. */
void http_read_no_more(struct http_conn *c);

/* http_read_turn - another turn has begun: the answer that was put off may be made up now. The
 * connection may be dead afterwards. */
void http_read_turn(struct http_conn *c);

/* http_read_resume - room was made for more requests: go on with bytes that were held back. */
void http_read_resume(struct http_conn *c);
