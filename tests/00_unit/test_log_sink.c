/* Lines that nobody reads do not hold up who writes them: they are lost and counted, and what
 * arrives is whole and in order. */
#include "os/log_sink.h"

#include "base/log.h"
#include "os/thread.h"
#include "support/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#define NOBODY     65534
#define MANY       40000 /* lines: more than any pipe, socket or terminal takes */
#define TEXT_BYTES (8 << 20)

static char text[TEXT_BYTES];
static size_t text_len;

static void put(int fd, unsigned writer, unsigned number)
{
    char line[128];
    int n = snprintf(line, sizeof(line), "line %u %u of those that nobody may read for a while\n",
                     writer, number);
    log_sink_put(fd, line, (size_t)n);
}

/* Reads what is there, behind what was read before. */
static void take(int fd)
{
    assert_int_equal(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK), 0);
    ssize_t n;
    while ((n = read(fd, text + text_len, TEXT_BYTES - 1 - text_len)) > 0)
        text_len += (size_t)n;
    text[text_len] = '\0';
}

/* Everything that was read: every line is whole, those of a writer come in order. Returns how
 * many lines came and were told lost. */
static unsigned long check(unsigned long *ret_lost)
{
    unsigned long came = 0;
    unsigned next[8] = {0};
    *ret_lost = 0;
    for (char *at = text; *at;) {
        char *end = memchr(at, '\n', text_len - (size_t)(at - text));
        assert_non_null(end);
        *end = '\0';
        char *lost = strstr(at, "] \"");
        unsigned writer, number;
        int len = -1;
        if (lost) {
            assert_non_null(strstr(at, " lines were lost since nobody read them\""));
            *ret_lost += strtoul(lost + 3, NULL, 10);
        } else {
            assert_int_equal(sscanf(at, "line %u %u of those that nobody may read for a while%n",
                                    &writer, &number, &len),
                             2);
            assert_int_equal(len, end - at);
            assert_true(writer < 8 && number >= next[writer]);
            next[writer] = number + 1;
            came++;
        }
        *end = '\n';
        at = end + 1;
    }
    return came;
}

/* Reads until every line came or was told lost; a terminal hands on what was written when it
 * likes. Returns how many were lost. */
static unsigned long take_all(int from, unsigned long written)
{
    unsigned long lost = 0;
    unsigned long known = 0;
    while (known < written) {
        struct pollfd more = {.fd = from, .events = POLLIN};
        assert_true(poll(&more, 1, 10) >= 0);
        take(from);
        log_sink_flush(1);
        if (text_len && text[text_len - 1] == '\n')
            known = check(&lost) + lost;
    }
    assert_int_equal(known, written);
    return lost;
}

/* Nobody reads until the destination is full and beyond; then somebody does. */
static void fill_and_read(int from, int to)
{
    text_len = 0;
    log_sink_open(to);
    int flags = fcntl(to, F_GETFL);
    for (unsigned i = 0; i < MANY; i++)
        put(to, 0, i);
    assert_true(take_all(from, MANY) > 0);
    put(to, 0, MANY);
    take_all(from, MANY + 1);
    assert_non_null(strstr(text, "line 0 40000 of"));
    assert_int_equal(fcntl(to, F_GETFL), flags);
    assert_false(flags & O_NONBLOCK); /* others who have it wait as before */
    log_sink_close(to);
    close(from);
    close(to);
}

static void unread_pipe(void **state)
{
    (void)state;
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    fill_and_read(fds[0], fds[1]);
}

/* Where the pipe belongs to somebody else, and cannot be opened anew. */
static void unread_pipe_of_another(void **state)
{
    (void)state;
    int fds[2];
    char path[32];
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(fchmod(fds[1], 0), 0);
    bool root = geteuid() == 0;
    if (root)
        assert_int_equal(seteuid(NOBODY), 0);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fds[1]);
    assert_int_equal(open(path, O_WRONLY | O_CLOEXEC), -1);
    fill_and_read(fds[0], fds[1]);
    if (root)
        assert_int_equal(seteuid(0), 0);
}

static void unread_socket(void **state)
{
    (void)state;
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    fill_and_read(fds[0], fds[1]);
}

static void unread_terminal(void **state)
{
    (void)state;
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    assert_true(master >= 0);
    assert_int_equal(grantpt(master), 0);
    assert_int_equal(unlockpt(master), 0);
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    assert_true(slave >= 0);
    struct termios raw;
    tcgetattr(slave, &raw);
    cfmakeraw(&raw);
    tcsetattr(slave, TCSANOW, &raw);
    fill_and_read(master, slave);
}

/* A file takes everything, and is no business of this. */
static void files_lose_nothing(void **state)
{
    (void)state;
    char path[] = "/tmp/nereid-log-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    unlink(path);
    log_sink_open(fd);
    for (unsigned i = 0; i < MANY; i++)
        put(fd, 0, i);
    lseek(fd, 0, SEEK_SET);
    text_len = 0;
    take(fd);
    unsigned long lost;
    assert_int_equal(check(&lost), MANY);
    assert_int_equal(lost, 0);
    log_sink_close(fd);
    close(fd);
}

/* A line that found room for a part of it: the rest goes out as soon as there is room, before
 * anything else. */
static void the_rest_of_a_line_comes_first(void **state)
{
    (void)state;
    static char line[3 * LOG_SINK_PIPE_BYTES];
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    log_sink_open(fds[1]);
    memset(line, 'a', sizeof(line) - 1);
    line[sizeof(line) - 1] = '\n';
    log_sink_put(fds[1], line, sizeof(line));
    put(fds[1], 0, 0); /* lost */
    text_len = 0;
    for (size_t before = 1; text_len != before;) {
        before = text_len;
        take(fds[0]);
        log_sink_flush(0);
    }
    put(fds[1], 0, 1);
    take(fds[0]);
    assert_true(text_len > sizeof(line));
    assert_memory_equal(text, line, sizeof(line));
    assert_non_null(strstr(text + sizeof(line), "\"1 lines were lost since nobody read them\"\n"));
    assert_non_null(strstr(text + sizeof(line), "line 0 1 of"));
    assert_null(strstr(text + sizeof(line), "line 0 0 of"));
    log_sink_close(fds[1]);
    close(fds[0]);
    close(fds[1]);
}

/* At the end of the process: it is not waited for without end. */
static void flush_ends(void **state)
{
    (void)state;
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    log_sink_open(fds[1]);
    for (unsigned i = 0; i < MANY; i++)
        put(fds[1], 0, i);
    log_sink_flush(20);
    log_sink_close(fds[1]);
    close(fds[0]);
    close(fds[1]);
}

/* The standard output and error are often one pipe: a line that was cut must not have one of the
 * other in its middle. */
static void two_descriptors_of_one_pipe(void **state)
{
    (void)state;
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    int other = dup(fds[1]);
    log_sink_open(fds[1]);
    log_sink_open(other);
    static char line[3 * LOG_SINK_PIPE_BYTES];
    memset(line, 'a', sizeof(line) - 1);
    line[sizeof(line) - 1] = '\n';
    log_sink_put(fds[1], line, sizeof(line));
    text_len = 0;
    take(fds[0]);
    log_sink_close(fds[1]);
    for (unsigned i = 0; i < 8; i++) {
        put(other, 0, i);
        take(fds[0]);
    }
    assert_memory_equal(text, line, sizeof(line));
    assert_non_null(strstr(text + sizeof(line), "line 0 7 of"));
    log_sink_close(other);
    close(other);
    close(fds[0]);
    close(fds[1]);
}

#define WRITERS 4u
#define EACH    20000u
static int shared[2];
static atomic_uint ended;

static void writer(void *arg)
{
    unsigned number = *(unsigned *)arg;
    for (unsigned i = 0; i < EACH; i++)
        put(shared[number & 1], number, i);
    atomic_fetch_add(&ended, 1);
}

/* Many threads, two descriptors, and a reader that is late now and then. */
static void threads_at_once(void **state)
{
    (void)state;
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    shared[0] = fds[1];
    shared[1] = dup(fds[1]);
    log_sink_open(shared[0]);
    log_sink_open(shared[1]);
    struct thread *threads[WRITERS];
    unsigned numbers[WRITERS];
    for (unsigned i = 0; i < WRITERS; i++) {
        numbers[i] = i;
        assert_null(thread_start("writer", writer, &numbers[i], &threads[i]));
    }
    text_len = 0;
    while (atomic_load(&ended) < WRITERS)
        take(fds[0]);
    for (unsigned i = 0; i < WRITERS; i++)
        thread_join(threads[i]);
    take_all(fds[0], WRITERS * EACH);
    log_sink_close(shared[0]);
    log_sink_close(shared[1]);
    close(shared[1]);
    close(fds[0]);
    close(fds[1]);
}

UNIT_MAIN(cmocka_unit_test(unread_pipe), cmocka_unit_test(unread_pipe_of_another),
          cmocka_unit_test(unread_socket), cmocka_unit_test(unread_terminal),
          cmocka_unit_test(files_lose_nothing), cmocka_unit_test(the_rest_of_a_line_comes_first),
          cmocka_unit_test(flush_ends), cmocka_unit_test(two_descriptors_of_one_pipe),
          cmocka_unit_test(threads_at_once))
