#pragma once
/* Bodies with a Content-Encoding. Worker's thread only. */
struct http_exchange;
struct http_message;

/* http_decode - decompress the body of a message, then let the service serve it: at once if it
 * is small, else after a helper has finished. If the body is damaged, the service gets what
 * comes before the damage.
 * m  valid for the call; its coding is gzip, deflate or zstd */
void http_decode(struct http_exchange *x, const struct http_message *m);
