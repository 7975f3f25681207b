#pragma once
/* The front end for HTTP of the server inside a fuzzer: its connections are given to it. */
struct fuzz_client;
struct http_front;
struct http_service;

/* fuzz_http_front - made with the first call, lives as long as the process. */
struct http_front *fuzz_http_front(void);

/* fuzz_http_open - another one, of another service; lives as long as the process. A few at most. */
struct http_front *fuzz_http_open(const struct http_service *service);

/* fuzz_http_serve - a connection, by the server's end of it (fuzz_server_open).
 * fuzz_http_serve_at - the same at another front end. */
void fuzz_http_serve(int fd);
void fuzz_http_serve_at(struct http_front *front, int fd);

/* fuzz_http_settle - run turns until no connection is left and no request is under way. */
void fuzz_http_settle(void);

/* fuzz_http_check - what a client got begins as an answer of HTTP/1.1 does, or with the settings of
 * HTTP/2, which it may have spoken. */
void fuzz_http_check(const struct fuzz_client *c);
