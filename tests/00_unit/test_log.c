#include "base/log.h"

#include "base/err.h"
#include "base/log_text.h"
#include "base/strbuf.h"
#include "os/thread.h"
#include "support/unit.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int fds[2];
static struct log_settings before;
static char text[100000];

static int redirect(void **state)
{
    (void)state;
    if (pipe2(fds, O_NONBLOCK | O_CLOEXEC) != 0 || fcntl(fds[1], F_SETPIPE_SZ, 1 << 20) < 0)
        return -1;
    before = log_get();
    struct log_settings s = before;
    s.fd = fds[1];
    log_set(&s);
    return 0;
}

static int restore(void **state)
{
    (void)state;
    log_set(&before);
    close(fds[0]);
    close(fds[1]);
    return 0;
}

/* What was written since the last call. */
static const char *written(void)
{
    ssize_t n = read(fds[0], text, sizeof(text) - 1);
    text[n > 0 ? n : 0] = '\0';
    return text;
}

/* The reference's default form: level, date, time, process, file, line, and the message between
 * quotes. */
static void default_format(void **state)
{
    (void)state;
    int month, day, hour, minute, second, micro, pid, line;
    char level;
    char file[64];
    char message[64];
    LOG_WARN("hello %d", 5);
    assert_int_equal(sscanf(written(), "%c%2d%2d %2d:%2d:%2d.%6d %d %63[^:]:%d] \"%63[^\"]\"\n",
                            &level, &month, &day, &hour, &minute, &second, &micro, &pid, file,
                            &line, message),
                     11);
    assert_int_equal(level, 'W');
    assert_string_equal(file, "test_log.c");
    assert_string_equal(message, "hello 5");
    assert_int_equal(pid, getpid());
}

static void iso_format(void **state)
{
    (void)state;
    int year, month, day, hour, minute, second;
    char level;
    struct log_settings s = log_get();
    s.format = LOG_FORMAT_ISO8601;
    log_set(&s);
    LOG_ERROR("x");
    assert_int_equal(sscanf(written(), "%4d-%2d-%2dT%2d:%2d:%2dZ %c ", &year, &month, &day, &hour,
                            &minute, &second, &level),
                     7);
    assert_true(year >= 2024);
    assert_int_equal(level, 'E');
}

static void switches(void **state)
{
    (void)state;
    struct log_settings s = log_get();
    s.info = false;
    s.verbose = 2;
    log_set(&s);
    LOG_INFO("off");
    assert_string_equal(written(), "");
    assert_false(log_enabled(LOG_LEVEL_INFO));
    assert_true(log_enabled(LOG_LEVEL_ERROR));
    LOG_VERBOSE(2, "two");
    assert_non_null(strstr(written(), "\"two\""));
    LOG_VERBOSE(3, "three");
    assert_string_equal(written(), "");
    s.verbose = 0;
    log_set(&s);
    assert_false(log_enabled(LOG_LEVEL_VERBOSE));
    assert_int_equal(log_get().verbose, 0);
}

/* A peer cannot forge lines or send escape sequences to a terminal. */
static void messages_are_escaped(void **state)
{
    (void)state;
    LOG_ERROR("%s", "a\nE1121 \"quoted\" \\ \t \x1b[31m \r\f\b\v \xc3\xa9/");
    const char *line = written();
    assert_non_null(strstr(line, "] \"a\\nE1121 \\\"quoted\\\" \\\\ \\t \\u001B[31m "
                                 "\\r\\f\\b\\u000B \xc3\xa9/\"\n"));
    assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
}

/* DEL and C1, which terminals obey as they do escape sequences: as UTF-8, and as the byte alone.
 * Other characters stay. */
static void later_controls_are_escaped(void **state)
{
    (void)state;
    static const char message[] = "\x7f \xc2\x9b"
                                  "31m \x9b"
                                  "2J \xc2\xa0 \xe2\x82\xac \xf0\x9f\x9a\x80 \xff";
    LOG_ERROR("%s", message);
    assert_non_null(strstr(written(), "] \"\\u007F \\u009B31m \\u009B2J \xc2\xa0 \xe2\x82\xac "
                                      "\xf0\x9f\x9a\x80 \xff\"\n"));
    struct log_settings s = log_get();
    s.format = LOG_FORMAT_JSON;
    log_set(&s);
    LOG_ERROR("%s", message);
    assert_non_null(strstr(written(), "\"message\":\"\\u007F \\u009B31m \xef\xbf\xbd"
                                      "2J \xc2\xa0 \xe2\x82\xac "
                                      "\xf0\x9f\x9a\x80 \xef\xbf\xbd\""));
}

/* A plug-in names the source file of its lines. */
static void file_names_forge_nothing(void **state)
{
    (void)state;
    static const char file[] = "/b\",\"level\":\n/x\"\n\x1b[2J\x7f\xc2\x9b\x9b\xc3\xa9.c";
    static struct log_site site;
    struct log_settings s = log_get();
    static const enum log_format formats[] = {LOG_FORMAT_DEFAULT, LOG_FORMAT_ISO8601};
    for (int i = 0; i < 4; i++) {
        s.format = formats[i / 2];
        s.escape = i % 2;
        log_set(&s);
        log_line(&site, LOG_LEVEL_ERROR, file, 7, "m");
        const char *line = written();
        assert_non_null(strstr(line, " x\"  [2J    \xc3\xa9.c:7] "));
        assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
    }
    s.format = LOG_FORMAT_JSON;
    log_set(&s);
    log_line(&site, LOG_LEVEL_ERROR, file, 7, "m");
    assert_non_null(strstr(
        written(), "\"component\":\"b\\\",\\\"level\\\":\\n\","
                   "\"source\":\"x\\\"\\n\\u001B[2J\\u007F\\u009B\xef\xbf\xbd\xc3\xa9.c:7\""));
    char longer[3000];
    memset(longer, 'f', sizeof(longer));
    longer[sizeof(longer) - 1] = '\0';
    longer[2000] = '/';
    for (int i = 0; i < 3; i++) {
        s.format = (enum log_format)i;
        log_set(&s);
        log_line(&site, LOG_LEVEL_ERROR, longer, 7, "m");
        assert_true(strlen(written()) < 600);
    }
}

static void long_messages_are_cut(void **state)
{
    (void)state;
    static char long_text[100000];
    memset(long_text, 'a', sizeof(long_text) - 1);
    LOG_ERROR("%s", long_text);
    const char *line = written();
    assert_in_range(strlen(line), 65000, 66000);
    assert_int_equal(line[strlen(line) - 1], '\n');
}

/* A call site that floods is held back, and the next second tells how much. */
static void floods_are_counted(void **state)
{
    (void)state;
    struct log_site site = {.second = 5, .lines = 1500};
    log_line(&site, LOG_LEVEL_ERROR, "dir/x.c", 7, "again");
    assert_non_null(strstr(written(), "x.c:7] \"again (500 like lines held back)\"\n"));
    size_t lines = 0;
    size_t seconds = 1;
    for (uint32_t i = 0, last = site.second; i < 3000; i++) {
        log_line(&site, LOG_LEVEL_ERROR, "x.c", 7, "flood");
        for (const char *at = written(); (at = strchr(at, '\n')) != NULL; at++)
            lines++;
        seconds += site.second != last;
        last = site.second;
    }
    /* A machine that is halted meanwhile sees several. */
    assert_in_range(lines, 999, seconds * 1000);
}

/* A call site that says no more after its flood: the next line of another place tells, or the
 * end. */
static void floods_that_end_are_told(void **state)
{
    (void)state;
    static struct log_site flood = {.lasts = true};
    static struct log_site other = {.lasts = true};
    const char *told =
        "flood.c:9] \"7 lines from here were held back: more than 1000 in a second\"\n";
    for (int end = 0; end < 2; end++) {
        flood.lines = 1006;
        flood.second = (uint32_t)time(NULL);
        log_line(&flood, LOG_LEVEL_ERROR, "dir/flood.c", 9, "flood");
        if (flood.lines != 1007) { /* another second began */
            end--;
            continue;
        }
        (void)written();
        if (end) {
            log_say_held();
        } else {
            flood.second--;
            log_line(&other, LOG_LEVEL_INFO, "dir/other.c", 3, "other");
        }
        const char *lines = written();
        assert_non_null(strstr(lines, told));
        assert_true(end || strstr(lines, "other.c:3] \"other\"\n"));
        log_say_held();
        assert_string_equal(written(), "");
    }
}

static void set_format(enum log_format format, bool escape)
{
    struct log_settings s = log_get();
    s.format = format;
    s.escape = escape;
    log_set(&s);
}

/* TRITON_SERVER_ESCAPE_LOG_MESSAGES=0: no quotes, nothing escaped. */
static void messages_can_stay_as_they_are(void **state)
{
    (void)state;
    set_format(LOG_FORMAT_DEFAULT, false);
    LOG_WARN("a \"b\" %s", "c\nd");
    assert_non_null(strstr(written(), "] a \"b\" c\nd\n"));
}

static void json_lines(void **state)
{
    (void)state;
    set_format(LOG_FORMAT_JSON, true);
    struct log_site site = {.second = 5, .lines = 1003};
    log_line(&site, LOG_LEVEL_WARN, "src/net/x.c", 7, "a \"b\"\n%s", "\xff\xc3\xa9\xed\xa0\x80");
    const char *line = written();
    assert_int_equal(strncmp(line, "{\"time\":\"20", 11), 0);
    assert_non_null(strstr(line, "Z\",\"level\":\"warning\",\"pid\":"));
    assert_non_null(strstr(line, ",\"component\":\"net\",\"source\":\"x.c:7\",\"message\":\"a "
                                 "\\\"b\\\"\\n\xef\xbf\xbd\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd"
                                 "\xef\xbf\xbd\",\"held_back\":3}\n"));
}

/* What a thread works on is told in its lines; a batch of several is not one request. */
static void requests_are_named(void **state)
{
    (void)state;
    log_context("id\n7", 1);
    LOG_ERROR("bad");
    assert_non_null(strstr(written(), "] \"[request id: id\\n7] bad\"\n"));
    LOG_ERROR("[request id: other] bad");
    assert_non_null(strstr(written(), "] \"[request id: other] bad\"\n"));
    set_format(LOG_FORMAT_JSON, true);
    LOG_ERROR("bad");
    assert_non_null(strstr(written(), "\"message\":\"bad\",\"request_id\":\"id\\n7\"}\n"));
    log_context("", 0);
    LOG_ERROR("failed: [request id: other] bad");
    assert_non_null(strstr(written(), "[request id: other] bad\",\"request_id\":\"other\"}\n"));
    LOG_ERROR("[request id: <id_unknown>] bad");
    assert_non_null(strstr(written(), "<id_unknown>] bad\"}\n"));
    set_format(LOG_FORMAT_DEFAULT, true);
    log_context("", 1);
    LOG_ERROR("bad");
    assert_non_null(strstr(written(), "] \"[request id: <id_unknown>] bad\"\n"));
    log_context("first", 2);
    LOG_ERROR("bad");
    assert_non_null(strstr(written(), "] \"bad\"\n"));
    const char *id;
    uint32_t requests;
    log_context_get(&id, &requests);
    assert_string_equal(id, "first");
    assert_int_equal(requests, 2);
    log_context("", 0);
}

/* The reference puts tables below their line, as they are. */
static void tables(void **state)
{
    (void)state;
    LOG_TABLE("+--+\n| \"|\n+--+\n");
    assert_non_null(strstr(written(), "] \n+--+\n| \"|\n+--+\n\n"));
    set_format(LOG_FORMAT_JSON, true);
    LOG_TABLE("+--+\n");
    assert_non_null(strstr(written(), "\"message\":\"+--+\\n\"}\n"));
}

static void components(void **state)
{
    (void)state;
    assert_true(log_component_known("net", 3));
    assert_true(log_component_known("cloud", 5));
    assert_false(log_component_known("ne", 2));
    assert_false(log_component_known("", 0));
    struct log_site net = {0}, batching = {0}, elsewhere = {0}, within = {0};
    assert_false(log_verbose_enabled(1));
    log_component_set("net", 2);
    assert_true(log_verbose_enabled(2));
    assert_false(log_verbose_enabled(3));
    assert_true(log_site_verbose(&net, "src/net/listener.c", 2));
    assert_false(log_site_verbose(&net, "src/net/listener.c", 3));
    assert_false(log_site_verbose(&batching, "/x/src/batching/batcher.c", 1));
    assert_true(log_site_verbose(&within, "../../src/net/own/x.c", 2));
    struct log_settings s = log_get();
    s.verbose = 3;
    log_set(&s);
    log_component_set("net", 0);
    assert_false(log_site_verbose(&net, "src/net/listener.c", 1));
    assert_true(log_site_verbose(&batching, "/x/src/batching/batcher.c", 3));
    assert_true(log_site_verbose(&elsewhere, "x.c", 3));
    log_component_set("net", LOG_AS_GENERAL);
    assert_true(log_site_verbose(&net, "src/net/listener.c", 3));
}

static bool same_levels(const char *in, const char *expected)
{
    struct log_levels levels;
    struct strbuf sb = STRBUF_INIT;
    struct err *e = log_levels_parse(in, strlen(in), &levels);
    if (!e)
        log_levels_put(&levels, &sb);
    bool same = strcmp(e ? err_message(e) : strbuf_str(&sb), expected) == 0;
    if (!same)
        print_error("%s: %s\n", in, e ? err_message(e) : strbuf_str(&sb));
    err_free(e);
    strbuf_fini(&sb);
    return same;
}

static void levels_as_text(void **state)
{
    (void)state;
    assert_true(same_levels("", ""));
    assert_true(same_levels("http=1", "http=1"));
    assert_true(same_levels("server=7,abi=0,http=1,", "abi=0,http=1,server=7"));
    assert_true(same_levels("http=1,http=4294967294", "http=4294967294"));
    assert_true(same_levels("http=4294967295", "component 'http': expected <component>=<level>"));
    assert_true(same_levels("http", "component 'http': expected <component>=<level>"));
    assert_true(same_levels("http=", "component 'http': expected <component>=<level>"));
    assert_true(same_levels("http=-1", "component 'http': expected <component>=<level>"));
    assert_true(same_levels("grpc=99999999999999999999999",
                            "component 'grpc': expected <component>=<level>"));
    assert_true(same_levels("htt=1", "no component 'htt', there are " LOG_COMPONENTS));
    assert_true(same_levels(",", "no component '', there are " LOG_COMPONENTS));
    assert_true(same_levels(" http=1", "no component ' http', there are " LOG_COMPONENTS));
}

/* Only what is meant changes; levels that are not named are the general one again. */
static void updates(void **state)
{
    (void)state;
    struct log_levels levels;
    log_component_set("net", 2);
    log_update(&(struct log_settings){.verbose = 3, .format = LOG_FORMAT_ISO8601},
               LOG_UPDATE_VERBOSE | LOG_UPDATE_INFO, NULL);
    struct log_settings s = log_get();
    assert_false(s.info);
    assert_true(s.warning && s.error);
    assert_int_equal(s.verbose, 3);
    assert_int_equal(s.format, before.format);
    assert_int_equal(s.fd, fds[1]);
    levels = log_levels_get();
    struct strbuf sb = STRBUF_INIT;
    log_levels_put(&levels, &sb);
    assert_string_equal(strbuf_str(&sb), "net=2");
    strbuf_fini(&sb);
    assert_null(log_levels_parse("http=5", 6, &levels));
    log_update(&s, 0, &levels);
    struct log_site net = {0}, http = {0};
    assert_true(log_verbose_enabled(5));
    assert_true(log_site_verbose(&http, "src/http/x.c", 5));
    assert_true(log_site_verbose(&net, "src/net/x.c", 3));
    assert_false(log_site_verbose(&net, "src/net/x.c", 4));
    assert_null(log_levels_parse("", 0, &levels));
    log_update(&s, 0, &levels);
    assert_false(log_verbose_enabled(4));
}

/* Two threads that change one member each: neither undoes the other, and a line sees a format
 * and its escaping of one moment. */
static void change_info(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < 10001; i++)
        log_update(&(struct log_settings){.info = i % 2}, LOG_UPDATE_INFO, NULL);
}

static void updates_at_once(void **state)
{
    (void)state;
    struct thread *thread;
    assert_null(thread_start("changer", change_info, NULL, &thread));
    for (uint32_t i = 1; i <= 10000; i++) {
        log_update(&(struct log_settings){.verbose = i}, LOG_UPDATE_VERBOSE, NULL);
        assert_int_equal(log_get().verbose, i);
    }
    thread_join(thread);
    assert_false(log_get().info);
    assert_int_equal(log_get().verbose, 10000);
}

static bool escaped_to(const char *in, size_t most, const char *expected)
{
    struct strbuf sb = STRBUF_INIT;
    log_text_escape_some(&sb, in, true, most);
    bool same = strcmp(strbuf_str(&sb), expected) == 0;
    strbuf_fini(&sb);
    return same;
}

/* Whole characters, as they stand in the line. */
static void values_are_cut(void **state)
{
    (void)state;
    assert_true(escaped_to("abc", 3, "abc"));
    assert_true(escaped_to("abcd", 3, "abc..."));
    assert_true(escaped_to("a\x01g", 7, "a\\u0001..."));
    assert_true(escaped_to("a\x01g", 6, "a..."));
    assert_true(escaped_to("\xc3\xa9\xc3\xa9", 3, "\xc3\xa9..."));
    assert_true(escaped_to("\xff", 2, "..."));
}

/* A host program need not ignore SIGPIPE, and must not die of a log that nobody reads. */
static void a_reader_that_went_ends_nothing(void **state)
{
    (void)state;
    sigset_t pending;
    close(fds[0]);
    LOG_WARN("hello");
    assert_int_equal(sigpending(&pending), 0);
    assert_false(sigismember(&pending, SIGPIPE));
    fds[0] = dup(fds[1]);
}

#define LOG_UNIT(fn) cmocka_unit_test_setup_teardown(fn, redirect, restore)
UNIT_MAIN(LOG_UNIT(default_format), LOG_UNIT(iso_format), LOG_UNIT(switches),
          LOG_UNIT(messages_are_escaped), LOG_UNIT(later_controls_are_escaped),
          LOG_UNIT(file_names_forge_nothing), LOG_UNIT(long_messages_are_cut),
          LOG_UNIT(floods_are_counted), LOG_UNIT(floods_that_end_are_told),
          LOG_UNIT(messages_can_stay_as_they_are), LOG_UNIT(json_lines),
          LOG_UNIT(requests_are_named), LOG_UNIT(tables), LOG_UNIT(components),
          LOG_UNIT(levels_as_text), LOG_UNIT(updates), LOG_UNIT(updates_at_once),
          LOG_UNIT(values_are_cut), LOG_UNIT(a_reader_that_went_ends_nothing))
