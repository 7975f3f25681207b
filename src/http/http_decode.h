#pragma once
/* Bodies with a Content-Encoding. Worker's thread only. */
struct http_exchange;
struct http_message;

/* http_decode - decompress the body of a message, then have the service serve it anew: at once
 * when it is small, else once a helper is through. Of a damaged body the service gets what there
 * was before the damage.
 * m  valid for the call; its coding is gzip or deflate */
void http_decode(struct http_exchange *x, const struct http_message *m);
