#include "os/log_sink.h"

#include "base/log.h"
#include "base/log_text.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "os/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* If nobody reads, lines are lost; if somebody reads slowly, they arrive whole: when only a part
 * of a line fits, the rest is kept here and written before any other line. */
struct sink {
    /* guards the fields below; held only for system calls that do not wait; the innermost of all
     * locks */
    pthread_mutex_t lock;
    unsigned users; /* number of slots that use it; guarded by `opening` */
    int fd;         /* the caller's descriptor */
    int own; /* the same pipe or terminal, opened again so that it never waits; -1 = not possible */
    bool socket;
    dev_t device;
    ino_t inode;
    char *rest;
    size_t rest_at;
    size_t rest_len;
    uint64_t lost;
    time_t said; /* when the number of lost lines was last reported */
};

/* Descriptors of the same pipe share one sink. */
struct sink_descriptor {
    atomic_int fd; /* the descriptor plus 1; 0 = free. A release store publishes the sink */
    _Atomic(struct sink *) sink;
};

static struct sink sinks[LOG_SINKS] = {[0 ... LOG_SINKS - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER}};
static struct sink_descriptor slots[LOG_SINKS];
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;

static struct sink_descriptor *log_sink_find(int fd)
{
    for (size_t i = 0; i < LOG_SINKS; i++)
        if (atomic_load_explicit(&slots[i].fd, memory_order_acquire) == fd + 1)
            return &slots[i];
    return NULL;
}

/* Used without a separate open file: asks whether a pipe has room for a piece, then writes only
 * that much. It could block only if another process writes to the same pipe in between. */
static ssize_t write_asking(const struct sink *s, const char *at, size_t len)
{
    struct pollfd room = {.fd = s->fd, .events = POLLOUT};
    if (poll(&room, 1, 0) != 1 || !(room.revents & (POLLOUT | POLLERR))) {
        errno = EAGAIN;
        return -1;
    }
    return write(s->fd, at, len < PIPE_BUF ? len : PIPE_BUF);
}

/* Writes as much as there is room for and returns how much. An error counts as written: a log
 * that cannot be written must not stop the server. */
static size_t write_some(const struct sink *s, const char *at, size_t len)
{
    size_t done = 0;
    while (done < len) {
        ssize_t n = s->socket     ? send(s->fd, at + done, len - done, MSG_DONTWAIT | MSG_NOSIGNAL)
                    : s->own >= 0 ? write(s->own, at + done, len - done)
                                  : write_asking(s, at + done, len - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? done : len;
        done += (size_t)n;
    }
    return done;
}

/* Writes a line. Returns false if there was no room for its first byte. */
static bool log_sink_write_line(struct sink *s, const char *line, size_t len)
{
    size_t done = write_some(s, line, len);
    if (!done)
        return false;
    if (done < len) {
        s->rest_len = len - done;
        s->rest_at = 0;
        s->rest = mem_alloc(s->rest_len);
        memcpy(s->rest, line + done, s->rest_len);
    }
    return true;
}

static bool write_rest(struct sink *s)
{
    if (!s->rest)
        return true;
    s->rest_at += write_some(s, s->rest + s->rest_at, s->rest_len - s->rest_at);
    if (s->rest_at < s->rest_len)
        return false;
    mem_free(s->rest);
    s->rest = NULL;
    return true;
}

static bool write_lost(struct sink *s, bool now)
{
    if (!s->lost)
        return true;
    char message[96];
    snprintf(message, sizeof(message), "%ju lines were lost since nobody read them",
             (uintmax_t)s->lost);
    struct log_settings settings = log_get();
    struct log_entry entry = {.level = LOG_LEVEL_WARN,
                              .format = settings.format,
                              .escape = settings.escape,
                              .file = "log_sink.c",
                              .line = __LINE__,
                              .component = "os",
                              .component_len = strlen("os"),
                              .message = message};
    clock_gettime(CLOCK_REALTIME, &entry.time);
    if (!now && entry.time.tv_sec == s->said)
        return true;
    struct strbuf sb = STRBUF_INIT;
    log_text_put(&sb, &entry);
    bool written = log_sink_write_line(s, sb.data, sb.len);
    strbuf_fini(&sb);
    if (written) {
        s->said = entry.time.tv_sec;
        s->lost = 0;
    }
    return written && !s->rest;
}

void log_sink_put(int fd, const char *line, size_t len)
{
    struct sink_descriptor *slot = log_sink_find(fd);
    struct sink *s = slot ? atomic_load_explicit(&slot->sink, memory_order_relaxed) : NULL;
    if (!s) {
        ssize_t ignored = write(fd, line, len); /* one write per line keeps lines whole */
        (void)ignored;
        return;
    }
    pthread_mutex_lock(&s->lock);
    if (!write_rest(s) || !write_lost(s, false) || !log_sink_write_line(s, line, len))
        s->lost++;
    pthread_mutex_unlock(&s->lock);
}

void log_sink_flush(int64_t wait_ms)
{
    time_ns until = wait_ms ? clock_now_ns() + TIME_MS(wait_ms) : 0;
    for (size_t i = 0; i < LOG_SINKS; i++) {
        struct sink *s = &sinks[i];
        for (;;) {
            pthread_mutex_lock(&s->lock);
            bool left = s->users && !(write_rest(s) && write_lost(s, wait_ms > 0));
            struct pollfd room = {.fd = s->fd, .events = POLLOUT};
            pthread_mutex_unlock(&s->lock);
            time_ns now = left && wait_ms ? clock_now_ns() : until;
            if (now >= until)
                break;
            poll(&room, 1, (int)((until - now + TIME_MS(1) - 1) / TIME_MS(1)));
        }
    }
}

/* Opens the same pipe or terminal again, so that O_NONBLOCK affects nobody else. Returns -1 if
 * this is not allowed. */
static int open_own(int fd, const struct stat *is)
{
    char path[32];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    int own = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    struct stat found;
    if (own >= 0 &&
        (fstat(own, &found) != 0 || found.st_dev != is->st_dev || found.st_ino != is->st_ino)) {
        close(own);
        own = -1;
    }
    return own;
}

static bool can_wait(int fd, const struct stat *is)
{
    return S_ISFIFO(is->st_mode) || S_ISSOCK(is->st_mode) || (S_ISCHR(is->st_mode) && isatty(fd));
}

/* Finds or makes the sink of a descriptor. Caller holds `opening`. */
static struct sink *sink_of(int fd, const struct stat *is)
{
    struct sink *unused = NULL;
    for (size_t i = 0; i < LOG_SINKS; i++) {
        struct sink *s = &sinks[i];
        if (s->users && s->device == is->st_dev && s->inode == is->st_ino)
            return s;
        if (!s->users)
            unused = s;
    }
    if (!unused)
        return NULL;
    pthread_mutex_lock(&unused->lock);
    unused->fd = fd;
    unused->socket = S_ISSOCK(is->st_mode);
    unused->own = unused->socket ? -1 : open_own(fd, is);
    unused->device = is->st_dev;
    unused->inode = is->st_ino;
    unused->lost = 0;
    unused->said = 0;
    pthread_mutex_unlock(&unused->lock);
    return unused;
}

void log_sink_open(int fd)
{
    log_sink_close(fd);
    struct stat is;
    if (fstat(fd, &is) != 0 || !can_wait(fd, &is))
        return;
    if (S_ISFIFO(is.st_mode) && fcntl(fd, F_GETPIPE_SZ) < LOG_SINK_PIPE_BYTES)
        fcntl(fd, F_SETPIPE_SZ, LOG_SINK_PIPE_BYTES);
    pthread_mutex_lock(&opening);
    struct sink_descriptor *unused = log_sink_find(-1);
    struct sink *s = unused ? sink_of(fd, &is) : NULL;
    if (s) {
        pthread_mutex_lock(&s->lock);
        s->users++;
        pthread_mutex_unlock(&s->lock);
        atomic_store_explicit(&unused->sink, s, memory_order_relaxed);
        atomic_store_explicit(&unused->fd, fd + 1, memory_order_release);
    }
    pthread_mutex_unlock(&opening);
}

void log_sink_close(int fd)
{
    pthread_mutex_lock(&opening);
    struct sink_descriptor *slot = log_sink_find(fd);
    if (slot) {
        struct sink *s = atomic_load_explicit(&slot->sink, memory_order_relaxed);
        atomic_store_explicit(&slot->fd, 0, memory_order_relaxed);
        pthread_mutex_lock(&s->lock);
        if (--s->users == 0) {
            if (s->own >= 0)
                close(s->own);
            s->own = -1;
            s->fd = -1; /* a line that comes late is not written */
            s->socket = false;
            mem_free(s->rest);
            s->rest = NULL;
        }
        pthread_mutex_unlock(&s->lock);
    }
    pthread_mutex_unlock(&opening);
}
