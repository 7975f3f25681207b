#pragma once
/* A server inside a fuzzer: one worker whose loop is run by hand, and models of the identity
 * backend. No thread is started while requests run inline, and nothing listens: connections are
 * given to it.
 *
 * The models: "m" FP32 [ -1 ] without batching, "b" INT32 [ 4 ] up to 8 in a batch, "s" BYTES [
 * -1 ], "t" two inputs of BOOL and FP64 with a fixed shape, "d" decoupled (fuzz_recite.h): BYTES and an
 * FP32 that may be left out. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct strbuf;
struct worker;

/* fuzz_server_worker - the worker; made with the first call, lives as long as the process. */
struct worker *fuzz_server_worker(void);

/* fuzz_server_fresh - before an input: models that were found slow may run inline again. */
void fuzz_server_fresh(void);

/* fuzz_server_turn - run one turn of the loop; waits for nothing. */
void fuzz_server_turn(void);

/* fuzz_server_forgive - called before each turn, if it is set: no connection is to be in the
 * slow lane of the loop, where it would rest while pieces that are to come one by one pile up. */
extern void (*fuzz_server_forgive)(void);

/* fuzz_server_open - a connected pair of sockets; ret_server is for the connection under test,
 * the result is the client's end, non-blocking. */
int fuzz_server_open(int *ret_server);

/* What a client does with a connection. */
struct fuzz_client {
    int fd;
    size_t received;
    uint8_t first[9];   /* that came in */
    struct strbuf *all; /* what came in, for who wants it */
    bool closed;        /* by the server */
};

/* fuzz_server_send - send bytes in pieces of at most `piece` (0 = all at once), with a turn of
 * the loop after each, and take what comes back. Stops early when the server has closed. */
void fuzz_server_send(struct fuzz_client *c, const void *data, size_t len, size_t piece);

/* fuzz_server_take - take what came back. */
void fuzz_server_take(struct fuzz_client *c);

/* fuzz_server_hang_up - end the client's side, take what is still said until the server has
 * closed too, close. */
void fuzz_server_hang_up(struct fuzz_client *c);

/* fuzz_server_read_all - end the client's side, take everything until the server has closed too,
 * however many turns that needs (a model that was slow runs on a thread of its own), close. */
void fuzz_server_read_all(struct fuzz_client *c);

/* fuzz_server_settle - run turns until no connection is left and no request is under way. open
 * counts the connections. */
void fuzz_server_settle(int (*open)(void));
