#pragma once
/* The front end for HTTP of the server inside a fuzzer: its connections are given to it. */
struct http_front;

/* fuzz_http_front - made with the first call, lives as long as the process. */
struct http_front *fuzz_http_front(void);

/* fuzz_http_serve - a connection, by the server's end of it (fuzz_server_open). */
void fuzz_http_serve(int fd);

/* fuzz_http_settle - run turns until no connection is left and no request is under way. */
void fuzz_http_settle(void);
