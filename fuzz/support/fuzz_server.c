#include "support/fuzz_server.h"

#include "base/check.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "model/config.h"
#include "model/config_fill.h"
#include "model/config_groups.h"
#include "os/clock.h"
#include "plugin/backend.h"
#include "plugin/model.h"
#include "serve/table.h"
#include "serve/version.h"
#include "server/server.h"
#include "support/fuzz_recite.h"
#include "triton/core/tritonbackend.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MODELS 5

static const char *const configs[MODELS] = {
    "name: 'm' backend: 'identity' input { name: 'INPUT0' data_type: TYPE_FP32 dims: [ -1 ] } "
    "output { name: 'OUTPUT0' data_type: TYPE_FP32 dims: [ -1 ] }",
    "name: 'b' backend: 'identity' max_batch_size: 8 "
    "input { name: 'INPUT0' data_type: TYPE_INT32 dims: [ 4 ] } "
    "output { name: 'OUTPUT0' data_type: TYPE_INT32 dims: [ 4 ] }",
    "name: 's' backend: 'identity' input { name: 'INPUT0' data_type: TYPE_STRING dims: [ -1 ] } "
    "output { name: 'OUTPUT0' data_type: TYPE_STRING dims: [ -1 ] } "
    "parameters { key: 'openai' value { string_value: "
    "'{\"request\":\"INPUT0\",\"text\":\"OUTPUT0\"}' } }",
    "name: 't' backend: 'identity' input [ { name: 'INPUT0' data_type: TYPE_BOOL dims: [ 2, 2 ] }, "
    "{ name: 'INPUT1' data_type: TYPE_FP64 dims: [ 2 ] } ] "
    "output [ { name: 'OUTPUT0' data_type: TYPE_BOOL dims: [ 2, 2 ] }, "
    "{ name: 'OUTPUT1' data_type: TYPE_FP64 dims: [ 2 ] } ]",
    "name: 'd' backend: 'recite' model_transaction_policy { decoupled: true } "
    "input [ { name: 'INPUT0' data_type: TYPE_STRING dims: [ -1 ] }, "
    "{ name: 'INPUT1' data_type: TYPE_FP32 dims: [ 1 ] optional: true } ] "
    "output [ { name: 'OUTPUT0' data_type: TYPE_STRING dims: [ -1 ] }, "
    "{ name: 'OUTPUT1' data_type: TYPE_FP32 dims: [ 1 ] } ] "
    "parameters { key: 'openai' value { string_value: "
    "'{\"prompt\":\"INPUT0\",\"input\":\"INPUT0\",\"inputs\":{\"n\":\"INPUT1\"},"
    "\"text\":\"OUTPUT0\",\"finish_reason\":\"OUTPUT0\",\"embedding\":\"OUTPUT1\"}' } }",
};

static struct plugin_backend backend;
static struct plugin_backend recite;
static struct serve_version *versions[MODELS];
static struct server *server;

static void must(struct err *e)
{
    if (e)
        fprintf(stderr, "%s\n", err_message(e));
    CHECK(!e);
}

static struct serve_version *make_version(const char *text)
{
    struct Inference__ModelConfig *proto;
    must(config_parse_text(text, strlen(text), "config.pbtxt", &proto));
    config_fill_defaults(proto, NULL);
    config_groups_fill(proto, NULL);
    struct model_config *config;
    must(config_compile(&proto, &config));
    struct plugin_model *model =
        model_new(config->decoupled ? &recite : &backend, config->name, 1, "/", NULL, false, NULL);
    model_publish_config(model, config);
    must(model_initialize(model));
    struct serve_version *v;
    must(version_new(config->name, 1, config, model, true, server->workers[0].loop,
                     server->features, &v));
    must(version_start(v));
    return v;
}

static void publish(void)
{
    struct table_model *models = mem_zalloc(MODELS * sizeof(*models));
    for (int i = 0; i < MODELS; i++) {
        versions[i] = make_version(configs[i]);
        models[i].name = versions[i]->name;
        models[i].entries = mem_zalloc(sizeof(*models[i].entries));
        models[i].entries[0] = (struct table_entry){
            .number = 1, .state = TABLE_READY, .reason = "", .version = versions[i]};
        models[i].entry_count = 1;
    }
    table_publish(server->table, models, MODELS);
}

static void make_server(void)
{
    struct log_settings quiet = log_get();
    quiet.info = quiet.warning = quiet.error = false;
    log_set(&quiet);
    static struct options options;
    options_defaults(&options);
    options.loop_threads = 1;
    options.memory_budget_bytes = (uint64_t)64 << 20;
    must(server_new(&options, &server));
    static const struct backend_registry unset = {.directory = ""};
    backend_init_remote(&backend, &unset, "identity",
                        &(struct backend_entries){
                            .model_initialize = TRITONBACKEND_ModelInitialize,
                            .model_finalize = TRITONBACKEND_ModelFinalize,
                            .instance_initialize = TRITONBACKEND_ModelInstanceInitialize,
                            .instance_finalize = TRITONBACKEND_ModelInstanceFinalize,
                            .execute = TRITONBACKEND_ModelInstanceExecute,
                        });
    backend.inline_ok = true;
    backend_init_remote(&recite, &unset, "recite",
                        &(struct backend_entries){.execute = fuzz_recite_execute});
    publish();
    atomic_store(&server->state, SERVER_READY);
}

struct worker *fuzz_server_worker(void)
{
    if (!server)
        make_server();
    return &server->workers[0];
}

void fuzz_server_fresh(void)
{
    for (int i = 0; i < MODELS; i++) {
        mutex_lock(&versions[i]->lock);
        versions[i]->inline_ok = true;
        mutex_unlock(&versions[i]->lock);
    }
}

static void stop_here(struct mail *m)
{
    (void)m;
    loop_stop(server->workers[0].loop);
}

void (*fuzz_server_forgive)(void);

void fuzz_server_turn(void)
{
    static struct mail stop = {.deliver = stop_here};
    struct loop *l = server->workers[0].loop;
    if (fuzz_server_forgive)
        fuzz_server_forgive();
    loop_post(l, &stop, &stop);
    loop_run(l);
}

int fuzz_server_open(int *ret_server)
{
    int pair[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
    *ret_server = pair[0];
    return pair[1];
}

void fuzz_server_take(struct fuzz_client *c)
{
    static uint8_t bytes[65536];
    for (;;) {
        ssize_t n = recv(c->fd, bytes, sizeof(bytes), 0);
        c->closed = n == 0 || (n < 0 && errno != EAGAIN);
        if (n <= 0)
            return;
        for (ssize_t i = 0; i < n && c->received < sizeof(c->first); i++)
            c->first[c->received++] = bytes[i];
        if (c->all)
            strbuf_append(c->all, bytes, (size_t)n);
    }
}

void fuzz_server_send(struct fuzz_client *c, const void *data, size_t len, size_t piece)
{
    const char *at = data;
    while (len) {
        size_t n = piece && piece < len ? piece : len;
        ssize_t put = send(c->fd, at, n, MSG_NOSIGNAL);
        if (put < 0 && errno != EAGAIN)
            return;
        if (put > 0) {
            at += put;
            len -= (size_t)put;
        }
        fuzz_server_turn();
        fuzz_server_take(c);
    }
}

void fuzz_server_hang_up(struct fuzz_client *c)
{
    shutdown(c->fd, SHUT_WR);
    for (int i = 0; i < 4; i++) {
        fuzz_server_turn();
        fuzz_server_take(c);
    }
    close(c->fd);
    c->fd = -1;
}

void fuzz_server_read_all(struct fuzz_client *c)
{
    time_ns until = clock_now_ns() + TIME_S(5);
    shutdown(c->fd, SHUT_WR);
    while (!c->closed) {
        fuzz_server_turn();
        fuzz_server_take(c);
        CHECK(clock_now_ns() < until); /* an answer that never ends */
    }
    close(c->fd);
    c->fd = -1;
}

static bool busy(void)
{
    for (int i = 0; i < MODELS; i++)
        if (version_pins(versions[i]))
            return true;
    return false;
}

void fuzz_server_settle(int (*open)(void))
{
    time_ns until = clock_now_ns() + TIME_S(5);
    while (open() || busy()) {
        fuzz_server_turn();
        CHECK(clock_now_ns() < until); /* a connection or a request that never ends */
    }
    fuzz_server_turn();
}
