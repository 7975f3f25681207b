/* os/sock_unix: whose place is taken, whose is not, and what is left behind. */
#include "os/sock_unix.h"

#include "os/sock.h"
#include "support/unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static char dir[64];
static char path[100];

static int make_dir(void **state)
{
    (void)state;
    snprintf(dir, sizeof(dir), "/tmp/nereid-sock-XXXXXX");
    if (!mkdtemp(dir))
        return -1;
    snprintf(path, sizeof(path), "%s/door", dir);
    return 0;
}

static int remove_dir(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(dir);
}

static bool is_there(void)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

static void addresses(void **state)
{
    (void)state;
    char longest[SOCK_UNIX_PATH_BYTES + 2];
    memset(longest, 'x', sizeof(longest));
    longest[SOCK_UNIX_PATH_BYTES + 1] = '\0';
    assert_null(sock_unix_path("127.0.0.1"));
    assert_null(sock_unix_path("unix"));
    assert_string_equal(sock_unix_path("unix:/a"), "/a");
    assert_false(sock_unix_path_ok(""));
    assert_false(sock_unix_path_ok(longest));
    assert_true(sock_unix_path_ok(longest + 1));
    int fd = -1;
    unit_fails(sock_unix_listen(longest, &fd), STATUS_INVALID_ARG, "1 to 107 bytes");
    unit_fails(sock_unix_listen("", &fd), STATUS_INVALID_ARG, "1 to 107 bytes");
}

static void a_server_that_runs_keeps_its_socket(void **state)
{
    (void)state;
    int first = -1, second = -1;
    char address[128];
    snprintf(address, sizeof(address), "unix:%s", path);
    unit_succeeds(sock_listen(address, 0, false, &first));
    assert_int_equal(sock_port(first), 0);
    unit_fails(sock_listen(address, 0, false, &second), STATUS_UNAVAILABLE,
               "Address already in use");
    int asked = sock_accept(first);
    assert_true(asked >= 0);
    sock_close(asked);
    sock_close(first);
    assert_true(is_there());
    unit_succeeds(sock_listen(address, 0, false, &second)); /* nobody is there any more */
    struct sock_unix_file *f = sock_unix_file(second);
    assert_non_null(f);
    sock_close(second);
    sock_unix_remove(f);
    assert_false(is_there());
}

/* A server that is too busy to accept is not gone; neither is one of another kind. */
static void what_may_be_there_is_there(void **state)
{
    (void)state;
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    memcpy(at.sun_path, path, strlen(path) + 1);
    int busy = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), fd = -1;
    assert_int_equal(bind(busy, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(busy, 0), 0);
    int caller = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(caller, (struct sockaddr *)&at, sizeof(at)), 0);
    unit_fails(sock_unix_listen(path, &fd), STATUS_UNAVAILABLE, "Address already in use");
    close(caller);
    close(busy);
    assert_int_equal(unlink(path), 0);
    int datagrams = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(datagrams, (struct sockaddr *)&at, sizeof(at)), 0);
    unit_fails(sock_unix_listen(path, &fd), STATUS_UNAVAILABLE, "Address already in use");
    close(datagrams);
    assert_int_equal(unlink(path), 0);
}

/* One that has its place, and does not listen yet, looks dead. */
static void a_server_that_just_opens_keeps_its_socket(void **state)
{
    (void)state;
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    char lock[120];
    int fd = -1;
    memcpy(at.sun_path, path, strlen(path) + 1);
    snprintf(lock, sizeof(lock), "%s.lock", path);
    int place = open(lock, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    assert_int_equal(flock(place, LOCK_EX), 0);
    int opens = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(opens, (struct sockaddr *)&at, sizeof(at)), 0);
    unit_fails(sock_unix_listen(path, &fd), STATUS_UNAVAILABLE, "Address already in use");
    assert_int_equal(listen(opens, 1), 0);
    close(place);
    unit_fails(sock_unix_listen(path, &fd), STATUS_UNAVAILABLE, "Address already in use");
    close(opens);
    unit_succeeds(sock_unix_listen(path, &fd));
    close(fd);
    assert_int_equal(unlink(path), 0);
    assert_int_not_equal(access(lock, F_OK), 0); /* nothing is left beside it */
    assert_int_equal(mkdir(lock, 0700), 0);
    unit_succeeds(sock_unix_listen(path, &fd)); /* also where none can be made */
    close(fd);
    assert_int_equal(rmdir(lock), 0);
    assert_int_equal(unlink(path), 0);
}

static void what_is_no_socket_stays(void **state)
{
    (void)state;
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    close(fd);
    unit_fails(sock_unix_listen(path, &fd), STATUS_INVALID_ARG, "no socket");
    assert_true(is_there());
    unlink(path);
    assert_int_equal(symlink("/nonexistent/nowhere", path), 0);
    unit_fails(sock_unix_listen(path, &fd), STATUS_INVALID_ARG, "no socket");
    assert_true(is_there());
    unlink(path);
}

static void only_its_own_file_is_removed(void **state)
{
    (void)state;
    int fd = -1;
    unit_succeeds(sock_unix_listen(path, &fd));
    struct sock_unix_file *f = sock_unix_file(fd);
    assert_non_null(f);
    char kept[120];
    snprintf(kept, sizeof(kept), "%s.kept", path);
    assert_int_equal(rename(path, kept), 0); /* so that its number is not given anew */
    int other = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    close(other);
    sock_unix_remove(f);
    assert_true(is_there());
    sock_close(fd);
    unlink(path);
    unlink(kept);
    unit_succeeds(sock_listen("127.0.0.1", 0, false, &fd));
    assert_null(sock_unix_file(fd));
    sock_unix_remove(NULL);
    sock_close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT(addresses),
        UNIT(a_server_that_runs_keeps_its_socket),
        UNIT(what_may_be_there_is_there),
        UNIT(a_server_that_just_opens_keeps_its_socket),
        UNIT(what_is_no_socket_stays),
        UNIT(only_its_own_file_is_removed),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
