#pragma once
/* Bodies with a Content-Encoding. Worker's thread only. */
struct http_exchange;
struct http_message;

struct err;

/* http_decode - decompress the body of a message, then let the service serve it: at once if it
 * is small, else after a helper has finished. If the body is damaged, the service gets what
 * comes before the damage, as in the reference; of zstd, which the reference does not know, the
 * answer is that error.
 * m  valid for the call; its coding is gzip, deflate or zstd */
void http_decode(struct http_exchange *x, const struct http_message *m);

/* http_decode_damage - the error for a damaged body. */
struct err *http_decode_damage(const char *why);
