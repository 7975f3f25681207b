#pragma once
/* Settings of traces over HTTP: GET tells them, POST changes them and tells them, in the order and
 * the words of the reference. */
struct err;
struct http_exchange;
struct http_message;

/* http_trace_serve - errors: what cannot be read or set; NULL when x was answered. */
struct err *http_trace_serve(struct http_exchange *x, struct http_message *m);
