#include "bench/bench_command.h"

#include "base/err_tell.h"
#include "base/mem.h"
#include "bench/bench_data.h"
#include "bench/bench_html.h"
#include "bench/bench_load.h"
#include "bench/bench_memory.h"
#include "bench/bench_model.h"
#include "bench/bench_report.h"
#include "bench/bench_wire.h"
#include "os/files/file.h"
#include "os/loop.h"
#include "os/process/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

enum exit_status {
    MEASURED = 0,
    FAILED = 1,
    WRONG_COMMAND_LINE = 2,
    NOT_STABLE = 3,
};

/* A file that a report goes to. */
struct bench_file {
    const char *path;
    FILE *file; /* NULL = not asked for, or written */
    bool made;  /* it was not there */
};

/* Everything of one run. */
struct bench {
    struct bench_options options;
    struct loop *loop;
    struct bench_wire *wire;
    struct bench_model model;
    bool statistics; /* the server has statistics of the model */
    struct bench_data data;
    struct bench_memory *memory; /* NULL = tensors travel in requests */
    struct bench_request *requests;
    struct bench_load *load;
    struct bench_result *results;
    uint32_t result_count;
    struct strbuf page; /* of --html, without what was measured */
    struct bench_file csv, html;
    struct loop_fd signals; /* readable when one was caught; fd -1 = not watched */
    bool terminal;          /* progress is shown on the standard error */
};

static void bench_print(struct strbuf *text)
{
    fputs(strbuf_str(text), stdout);
    fflush(stdout);
    strbuf_fini(text);
}

static void bench_progress(void *arg, double level, uint32_t trial, const struct bench_window *w)
{
    const struct bench *b = arg;
    struct strbuf text = STRBUF_INIT;
    bench_report_window(&b->options, trial, w, &text);
    if (b->options.verbose) {
        strbuf_putc(&text, '\n');
        bench_print(&text);
    } else if (b->terminal) {
        fprintf(stderr, "\r" BENCH_OPTIONS_NUMBER ": %s\033[K", level, strbuf_str(&text) + 2);
    }
    strbuf_fini(&text);
}

static void clear_progress(const struct bench *b)
{
    if (b->terminal && !b->options.verbose)
        fputs("\r\033[K", stderr);
}

/* Asks one question about the model. */
static struct err *bench_ask(struct bench *b, struct bench_lane *lane, enum bench_question q,
                             struct bench_call *c)
{
    struct strbuf question = STRBUF_INIT;
    bench_model_ask(&b->options, q, &c->path, &question);
    c->pieces[0] = (struct iovec){question.data, question.len};
    struct err *e = bench_wire_ask(b->wire, lane, c);
    strbuf_fini(&question);
    return e;
}

/* What the model takes. A server that only knows the standard protocol has neither configuration
 * nor statistics: its models do not batch, as far as can be told. */
static struct err *bench_look(struct bench *b)
{
    const struct bench_options *o = &b->options;
    struct bench_call c = {0};
    struct bench_lane *lane = NULL;
    struct err *e = bench_wire_lane(b->wire, BENCH_LANE_UNARY, &lane);
    if (e)
        return e;
    e = bench_ask(b, lane, BENCH_METADATA, &c);
    if (!e)
        e = bench_model_metadata(&b->model, o->protocol, c.answer.data, c.answer.len);
    if (!e) {
        struct err *none = bench_ask(b, lane, BENCH_CONFIG, &c);
        if (none)
            err_free(none);
        else
            e = bench_model_config(&b->model, o->protocol, c.answer.data, c.answer.len);
    }
    if (!e) {
        struct err *none = bench_ask(b, lane, BENCH_STATISTICS, &c);
        b->statistics = !none;
        err_free(none);
    }
    lane->free(lane);
    strbuf_fini(&c.answer);
    return err_wrap(e, "model '%s' at %s", o->model, o->address);
}

static void forget_signals(struct bench *b)
{
    if (b->signals.fd >= 0)
        loop_del(b->loop, &b->signals);
    b->signals.fd = -1;
}

static void bench_on_signal(struct loop_fd *w, uint32_t events)
{
    (void)events;
    struct bench *b = LIST_ITEM(w, struct bench, signals);
    forget_signals(b);
    if (b->load)
        bench_load_stop(b->load);
    else
        loop_stop(b->loop);
}

/* From here on a signal ends what is under way in order: until then there is nothing to undo. */
static struct err *watch_signals(struct bench *b)
{
    struct err *e = signals_catch(&b->signals.fd);
    if (!e)
        e = loop_add(b->loop, &b->signals, EPOLLIN);
    if (e)
        b->signals.fd = -1;
    return e;
}

static struct err *bench_prepare(struct bench *b)
{
    struct err *e = loop_new(&b->loop);
    if (e)
        return e;
    b->wire = bench_wire_new(&b->options, b->loop);
    e = bench_look(b);
    if (!e && b->model.decoupled && !b->options.streaming)
        e = err_new(STATUS_INVALID_ARG,
                    "model '%s' answers a request with any number of responses: add --streaming "
                    "-i grpc",
                    b->options.model);
    if (!e)
        e = bench_data_make(&b->options, &b->model, &b->data);
    if (!e)
        e = watch_signals(b);
    if (!e && b->options.shared_memory)
        e = bench_memory_share(&b->options, b->wire, &b->data, &b->memory);
    if (e)
        return e;
    b->requests = mem_zalloc((b->data.step_count + 1) * sizeof(*b->requests));
    for (uint32_t i = 0; i < b->data.step_count; i++)
        bench_request_make(&b->options, &b->data.steps[i], &b->requests[i]);
    struct bench_load_settings s = {.options = &b->options,
                                    .loop = b->loop,
                                    .wire = b->wire,
                                    .data = &b->data,
                                    .requests = b->requests,
                                    .statistics = b->statistics,
                                    .sequences = b->model.sequences,
                                    .decoupled = b->model.decoupled,
                                    .progress = bench_progress,
                                    .arg = b};
    return bench_load_new(&s, &b->load);
}

/* True if latencies are above the limit, also where no answer came within a window. */
static bool is_above_limit(const struct bench_options *o, const struct bench_result *r)
{
    return o->latency_limit_ms > 0 &&
           (!r->measured.latencies.count ||
            bench_window_latency(&r->measured, o->percentile) > o->latency_limit_ms * 1e6);
}

static struct err *bench_measure(struct bench *b)
{
    const struct bench_options *o = &b->options;
    const struct bench_range *range = o->rate.given ? &o->rate : &o->concurrency;
    struct strbuf text = STRBUF_INIT;
    double level;
    bench_report_settings(o, &text);
    bench_print(&text);
    for (uint32_t n = 0; !signals_caught() && bench_options_level(range, n, &level); n++) {
        b->results = mem_realloc(b->results, (n + 1) * sizeof(*b->results));
        struct bench_result *r = &b->results[n];
        struct err *e = bench_load_measure(b->load, level, r);
        clear_progress(b);
        if (e)
            return err_wrap(e, "%s " BENCH_OPTIONS_NUMBER,
                            o->rate.given ? "request rate" : "concurrency", level);
        b->result_count++;
        bench_report_level(o, r, &text);
        bench_print(&text);
        if (is_above_limit(o, r))
            break;
    }
    bench_report_summary(o, b->results, b->result_count, &text);
    bench_print(&text);
    return NULL;
}

/* Opens a report before anything is measured. What the file holds stays until there is something
 * to write. */
static struct err *bench_open_file(const char *option, const char *path, struct bench_file *ret)
{
    int fd;
    struct stat there;
    bool made = path && lstat(path, &there) != 0;
    struct err *e = path ? file_append(path, &fd) : NULL;
    if (!path || e)
        return err_wrap(e, "option --%s", option);
    fcntl(fd, F_SETFL, 0); /* writing to a pipe waits for its reader */
    *ret = (struct bench_file){path, fdopen(fd, "w"), made};
    if (ret->file)
        return NULL;
    close(fd);
    return err_new(STATUS_INTERNAL, "option --%s: no memory", option);
}

/* Whether both are one file on a disk: one report would end the other. */
static bool bench_shares_file(FILE *a, FILE *b)
{
    struct stat of_a, of_b;
    return a && b && fstat(fileno(a), &of_a) == 0 && fstat(fileno(b), &of_b) == 0 &&
           S_ISREG(of_a.st_mode) && of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
}

static struct err *bench_open_files(struct bench *b)
{
    const struct bench_options *o = &b->options;
    struct err *e = bench_open_file("filename", o->csv, &b->csv);
    if (!e)
        e = bench_open_file("html", o->html, &b->html);
    if (!e && bench_shares_file(b->csv.file, b->html.file))
        e = err_new(STATUS_INVALID_ARG,
                    "options --filename and --html: expected two files, found one: '%s' and '%s'",
                    o->csv, o->html);
    return e;
}

/* Ends a file that nothing was written to: it goes if it is ours. */
static void bench_leave_file(struct bench_file *file)
{
    if (!file->file)
        return;
    fclose(file->file);
    if (file->made)
        unlink(file->path);
}

static struct err *bench_write_file(const char *option, struct bench_file *file,
                                    struct strbuf *text)
{
    FILE *f = file->file;
    file->file = NULL;
    /* A pipe and a device have no length. */
    bool ok = (ftruncate(fileno(f), 0) == 0 || errno == EINVAL) && fputs(strbuf_str(text), f) >= 0;
    int number = errno;
    if (fclose(f) != 0) {
        number = errno;
        ok = false;
    }
    strbuf_fini(text);
    return ok ? NULL : err_errno(number, "option --%s: writing '%s'", option, file->path);
}

static const char who[] = "nereid bench";

/* Returns whether all were written. */
static bool bench_write_files(struct bench *b)
{
    const struct bench_options *o = &b->options;
    struct strbuf text = STRBUF_INIT;
    bool failed = false;
    if (b->csv.file) {
        bench_report_csv(o, b->results, b->result_count, &text);
        failed = err_tell(who, bench_write_file("filename", &b->csv, &text));
    }
    if (b->html.file) {
        bench_html_fill(&b->page, o, b->results, b->result_count, &text);
        failed |= err_tell(who, bench_write_file("html", &b->html, &text));
    }
    return !failed;
}

static void bench_fini(struct bench *b)
{
    bench_leave_file(&b->csv);
    bench_leave_file(&b->html);
    forget_signals(b);
    bench_load_free(b->load);
    bench_memory_free(b->memory);
    for (uint32_t i = 0; b->requests && i < b->data.step_count; i++)
        strbuf_fini(&b->requests[i].rest);
    mem_free(b->requests);
    mem_free(b->results);
    strbuf_fini(&b->page);
    bench_data_fini(&b->data);
    bench_model_fini(&b->model);
    bench_wire_free(b->wire);
    loop_free(b->loop);
}

static int bench_run(struct bench *b)
{
    struct err *e = b->options.html ? bench_html_page(&b->page) : NULL;
    if (!e)
        e = bench_open_files(b);
    if (!e)
        e = bench_prepare(b);
    if (!e)
        e = bench_measure(b);
    bool failed = err_tell(who, e);
    if (!failed || b->result_count) /* an error of a later level leaves what was measured */
        failed |= !bench_write_files(b);
    if (failed)
        return FAILED;
    for (uint32_t i = 0; i < b->result_count; i++)
        if (!b->results[i].steady)
            return NOT_STABLE;
    return MEASURED;
}

int bench_command(int argc, char **argv)
{
    struct bench *b = MEM_NEW(struct bench);
    b->terminal = isatty(STDERR_FILENO);
    b->signals = (struct loop_fd){.fd = -1, .ready = bench_on_signal};
    struct err *e = bench_options_parse(argc - 1, argv + 1, &b->options);
    int status;
    if (err_tell(who, e)) {
        status = WRONG_COMMAND_LINE;
    } else if (b->options.help) {
        char *help = bench_options_help();
        fputs(help, stdout);
        mem_free(help);
        status = MEASURED;
    } else {
        status = bench_run(b);
    }
    bench_fini(b);
    bench_options_fini(&b->options);
    mem_free(b);
    if (signals_caught())
        signals_end(signals_caught());
    return status;
}
