#include "bench/bench_html.h"

#include "base/mem.h"
#include "bench/bench_report.h"
#include "codec/json_out.h"
#include "os/files/beside.h"
#include "os/files/file.h"

#include <inttypes.h>
#include <string.h>

#define PAGE_BYTES ((size_t)4 << 20)

/* Marks of the page, and the files that take their places. */
static const char library_mark[] = "/*uplot.js*/", style_mark[] = "/*uplot.css*/",
                  data_mark[] = "/*data*/";

static struct err *read_part(const char *prefix, const char *name, char **ret)
{
    struct strbuf path = STRBUF_INIT;
    size_t len;
    strbuf_printf(&path, "%s/share/nereid/report/%s", prefix ? prefix : "", name);
    struct err *e = file_read(strbuf_str(&path), PAGE_BYTES, ret, &len);
    strbuf_fini(&path);
    return err_wrap(e, "option --html: this installation cannot write reports (it was built where "
                       "npm could not fetch uPlot)");
}

/* Appends a text with one mark replaced; the text without it is appended as it is. */
static void put_replaced(struct strbuf *to, const char *text, const char *mark, const char *by)
{
    const char *at = strstr(text, mark);
    strbuf_append(to, text, at ? (size_t)(at - text) : strlen(text));
    if (!at)
        return;
    strbuf_puts(to, by);
    strbuf_puts(to, at + strlen(mark));
}

struct err *bench_html_page(struct strbuf *ret)
{
    char *prefix = beside_prefix(), *page = NULL, *library = NULL, *style = NULL;
    struct strbuf styled = STRBUF_INIT;
    struct err *e = read_part(prefix, "report.html", &page);
    if (!e)
        e = read_part(prefix, "uPlot.iife.min.js", &library);
    if (!e)
        e = read_part(prefix, "uPlot.min.css", &style);
    if (!e) {
        put_replaced(&styled, page, style_mark, style);
        put_replaced(ret, strbuf_str(&styled), library_mark, library);
    }
    strbuf_fini(&styled);
    mem_free(style);
    mem_free(library);
    mem_free(page);
    mem_free(prefix);
    return e;
}

/* A string of JSON that ends no element of HTML: "<" is written as a number. */
static void html_put_string(struct strbuf *to, const char *s)
{
    struct strbuf json = STRBUF_INIT;
    json_out_put(&json, s);
    for (size_t i = 0; i < json.len; i++) {
        if (json.data[i] == '<')
            strbuf_puts(to, "\\u003c");
        else
            strbuf_putc(to, json.data[i]);
    }
    strbuf_fini(&json);
}

static void html_put_level(struct strbuf *to, const struct bench_options *o,
                           const struct bench_result *r)
{
    static const double curve[] = {10, 25, 50, 75, 90, 95, 99, 99.9, 99.99};
    const struct bench_histogram *h = &r->measured.latencies;
    strbuf_printf(
        to,
        "{\"level\":" BENCH_OPTIONS_NUMBER ",\"steady\":%s,\"rate\":%.3f,\"count\":%" PRIu64
        ",\"mean\":%.3f,\"deviation\":%.3f,\"cpu\":%.3f,\"percentiles\":[",
        r->level, r->steady ? "true" : "false", bench_window_rate(&r->measured) * o->batch_size,
        h->count, bench_histogram_mean(h) / 1000, bench_histogram_deviation(h) / 1000,
        h->count ? (double)r->measured.cpu_ns / (double)h->count / 1000 : 0);
    for (size_t i = 0; i < sizeof(curve) / sizeof(*curve); i++)
        strbuf_printf(to, "%s[%g,%.3f]", i ? "," : "", curve[i],
                      bench_histogram_percentile(h, curve[i]) / 1000);
    struct bench_parts p = bench_report_parts(&r->measured);
    strbuf_printf(to, "],\"parts\":{\"send\":%.3f,", p.send / 1000);
    if (r->measured.server.known)
        strbuf_printf(to,
                      "\"network and server\":%.3f,\"queue\":%.3f,\"input\":%.3f,\"model\":%.3f,"
                      "\"output\":%.3f,",
                      p.network / 1000, p.queue / 1000, p.input / 1000, p.infer / 1000,
                      p.output / 1000);
    strbuf_printf(to, "\"receive\":%.3f}}", p.receive / 1000);
}

/* The levels with answers, or those without: they have no numbers to draw. */
static void html_put_levels(struct strbuf *to, const struct bench_options *o,
                            const struct bench_result *results, uint32_t count, bool answered)
{
    bool first = true;
    for (uint32_t i = 0; i < count; i++) {
        if ((results[i].measured.latencies.count > 0) != answered)
            continue;
        strbuf_puts(to, first ? "" : ",");
        first = false;
        if (answered)
            html_put_level(to, o, &results[i]);
        else
            strbuf_printf(to, BENCH_OPTIONS_NUMBER, results[i].level);
    }
}

void bench_html_fill(const struct strbuf *page, const struct bench_options *o,
                     const struct bench_result *results, uint32_t count, struct strbuf *to)
{
    struct strbuf json = STRBUF_INIT, text = STRBUF_INIT;
    strbuf_printf(&text, "%s at %s", o->model, o->address);
    strbuf_puts(&json, "{\"title\":");
    html_put_string(&json, strbuf_str(&text));
    text.len = 0;
    strbuf_printf(
        &text, "%s, batch size %u, windows of %u ms, stable within " BENCH_OPTIONS_NUMBER " %%.",
        o->protocol == BENCH_GRPC ? "gRPC" : "HTTP", o->batch_size, o->interval_ms, o->stability);
    strbuf_puts(&json, ",\"settings\":");
    html_put_string(&json, strbuf_str(&text));
    strbuf_printf(&json, ",\"level\":\"%s\",\"levels\":[",
                  o->rate.given ? "Request rate" : "Concurrency");
    html_put_levels(&json, o, results, count, true);
    strbuf_puts(&json, "],\"unanswered\":[");
    html_put_levels(&json, o, results, count, false);
    strbuf_puts(&json, "]}");
    put_replaced(to, strbuf_str(page), data_mark, strbuf_str(&json));
    strbuf_fini(&text);
    strbuf_fini(&json);
}
