/* Every system call and allocation of base/ and os/ that may fail, failing in turn. */
#include "base/arena.h"
#include "base/budget.h"
#include "base/mem.h"
#include "os/clock.h"
#include "os/files/file.h"
#include "os/loop.h"
#include "os/pool.h"
#include "os/sock.h"
#include "os/thread.h"
#include "support/fault_run.h"
#include "support/unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static void stop(struct loop_timer *t)
{
    (void)t;
    loop_stop(loop_current());
}

static void never_ready(struct loop_fd *w, uint32_t events)
{
    (void)w;
    (void)events;
}

static struct err *use_loop(void *arg)
{
    (void)arg;
    struct loop *l = NULL;
    struct loop_timer t = LOOP_TIMER_INIT(stop);
    int fds[2];
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    struct loop_fd w = {.fd = fds[0], .ready = never_ready};
    struct err *e = loop_new(&l);
    if (e)
        goto out;
    e = loop_add(l, &w, EPOLLIN);
    if (e)
        goto out;
    loop_timer_set(l, &t, 0);
    loop_run(l);
    loop_del(l, &w);
out:
    loop_free(l);
    close(fds[0]);
    close(fds[1]);
    return e;
}

static void loops(void **state)
{
    (void)state;
    assert_true(fault_run(use_loop, NULL) >= 3);
}

static void do_nothing(void *arg)
{
    (void)arg;
}

static struct err *use_threads(void *arg)
{
    (void)arg;
    struct thread *first = NULL;
    struct thread *second = NULL;
    struct err *e = thread_start("first", do_nothing, NULL, &first);
    if (!e)
        e = thread_start("second", do_nothing, NULL, &second);
    thread_join(first);
    thread_join(second);
    return e;
}

static void threads(void **state)
{
    (void)state;
    assert_int_equal(fault_run(use_threads, NULL), 2);
}

static struct err *use_pool(void *arg)
{
    (void)arg;
    const size_t sizes[] = {100, POOL_MAPPED_BYTES, (size_t)3 << 20};
    struct buf *bufs[3] = {NULL};
    struct err *e = NULL;
    for (int i = 0; i < 3 && !e; i++)
        e = pool_buf(sizes[i], &bufs[i]);
    for (int i = 0; i < 3; i++)
        buf_unref(bufs[i]);
    pool_trim(TIME_NEVER);
    return e;
}

static void pools(void **state)
{
    (void)state;
    assert_int_equal(fault_run(use_pool, NULL), 3);
}

static struct err *use_files(void *dir)
{
    struct file_list list = {0};
    char *text = NULL;
    size_t len;
    char *path = file_join(dir, "file");
    struct err *e = file_read(path, 100, &text, &len);
    if (!e)
        e = file_list_dir(dir, 10, &list);
    mem_free(path);
    mem_free(text);
    file_list_fini(&list);
    return e;
}

static void files(void **state)
{
    (void)state;
    char dir[] = "/tmp/nereid-fault-XXXXXX";
    assert_non_null(mkdtemp(dir));
    char *path = file_join(dir, "file");
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, "text", 4), 4);
    close(fd);
    assert_true(fault_run(use_files, dir) >= 4);
    unlink(path);
    rmdir(dir);
    mem_free(path);
}

static struct err *use_arena(void *arg)
{
    (void)arg;
    struct arena a;
    arena_init(&a, NULL, 0);
    void *first = arena_try_alloc(&a, 100, 64);
    void *second = arena_try_alloc(&a, 1 << 20, 4096);
    arena_fini(&a);
    return first && second ? NULL : err_new(STATUS_UNAVAILABLE, "no memory");
}

static void arenas(void **state)
{
    (void)state;
    assert_int_equal(fault_run(use_arena, NULL), 2);
}

static struct err *use_sockets(void *arg)
{
    (void)arg;
    int listening = -1;
    int pair[2];
    char text[4];
    const struct iovec piece = {.iov_base = text, .iov_len = sizeof(text)};
    struct err *e = sock_listen("127.0.0.1", 0, false, &listening);
    if (e)
        return e;
    assert_true(sock_port(listening) != 0);
    int connected = -1;
    e = sock_connect("127.0.0.1", sock_port(listening), &connected);
    if (e) {
        sock_close(listening);
        return e;
    }
    sock_close(connected);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
    memset(text, 'x', sizeof(text));
    if (sock_write(pair[0], &piece, 1) != sizeof(text))
        e = err_new(STATUS_UNAVAILABLE, "writing");
    else if (sock_read(pair[1], text, sizeof(text)) != sizeof(text))
        e = err_new(STATUS_UNAVAILABLE, "reading");
    sock_close(listening);
    sock_close(pair[0]);
    sock_close(pair[1]);
    return e;
}

static void sockets(void **state)
{
    (void)state;
    assert_true(fault_run(use_sockets, NULL) >= 4);
}

UNIT_MAIN(UNIT(loops), UNIT(threads), UNIT(pools), UNIT(files), UNIT(arenas), UNIT(sockets))
