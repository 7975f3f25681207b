#pragma once
/* What clients are told whose requests are cut because the server has no more time to stop.
 * Worker's thread only. */

struct http_conn;
struct http_line;

/* http_cut_conn - answer the requests that are not answered yet, as far as that can be written at
 * once, and close the connection.
 * returns  how many there were */
unsigned http_cut_conn(struct http_conn *c);

/* http_cut_line - answer the request of a line that is next: with 503, or with an error as the last
 * event of a stream that has begun. The others of the line are counted as cut.
 * returns  how many there were */
unsigned http_cut_line(struct http_line *l);
