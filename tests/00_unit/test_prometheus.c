#include "metrics/prometheus.h"

#include "support/unit.h"

static void family_lines(void **state)
{
    (void)state;
    struct strbuf out = STRBUF_INIT;
    prometheus_family(&out, "a_b", "counter", "line\nback\\slash \"quoted\"");
    assert_string_equal(strbuf_str(&out),
                        "# HELP a_b line\\nback\\\\slash \"quoted\"\n# TYPE a_b counter\n");
    strbuf_fini(&out);
}

static void labels_are_escaped(void **state)
{
    (void)state;
    struct strbuf l = STRBUF_INIT;
    prometheus_label(&l, "a", "plain");
    prometheus_label(&l, "b", "q\"b\\n\n.");
    assert_string_equal(strbuf_str(&l), "a=\"plain\",b=\"q\\\"b\\\\n\\n.\"");
    strbuf_fini(&l);
}

static void shown_as(const char *text, const char *expected)
{
    struct strbuf l = STRBUF_INIT;
    prometheus_label(&l, "a", text);
    assert_string_equal(strbuf_str(&l), expected);
    strbuf_fini(&l);
}

/* What is not UTF-8 must not make the whole page unreadable. */
static void labels_are_utf8(void **state)
{
    (void)state;
    shown_as("h\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80",
             "a=\"h\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"");
    shown_as("x\xffy", "a=\"x\xef\xbf\xbdy\"");
    shown_as("\xc0\xaf", "a=\"\xef\xbf\xbd\xef\xbf\xbd\"");                 /* too long a form */
    shown_as("\xed\xa0\x80", "a=\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""); /* surrogate */
    shown_as("\xe2\x82", "a=\"\xef\xbf\xbd\xef\xbf\xbd\"");                 /* cut off */
    shown_as("\xf4\x90\x80\x80", "a=\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
}

static void label_names(void **state)
{
    (void)state;
    struct strbuf n = STRBUF_INIT;
    prometheus_label_name(&n, "1a-b.c\xc3\xa9Z_9");
    assert_string_equal(strbuf_str(&n), "_a_b_c__Z_9");
    n.len = 0;
    strbuf_putc(&n, '_');
    prometheus_label_name(&n, "1");
    assert_string_equal(strbuf_str(&n), "_1");
    strbuf_fini(&n);
}

static void samples(void **state)
{
    (void)state;
    struct strbuf out = STRBUF_INIT;
    prometheus_sample(&out, "a", "", "", UINT64_MAX);
    prometheus_sample(&out, "a", "_sum", "x=\"y\"", 0);
    assert_string_equal(strbuf_str(&out), "a 18446744073709551615\na_sum{x=\"y\"} 0\n");
    out.len = 0;
    prometheus_sample_parts(&out, "t", "", "", 12, 0, 1000);
    prometheus_sample_parts(&out, "t", "", "", 12, 5, 1000);
    prometheus_sample_parts(&out, "t", "_sum", "", 0, 120, 1000);
    assert_string_equal(strbuf_str(&out), "t 12\nt 12.005\nt_sum 0.12\n");
    strbuf_fini(&out);
}

UNIT_MAIN(UNIT(family_lines), UNIT(labels_are_escaped), UNIT(labels_are_utf8), UNIT(label_names),
          UNIT(samples))
