/* A backend that means harm to the server that runs it in a process of its own. What it does is
 * what the first number of a request says. Models have an INPUT0 of INT32 and an OUTPUT0 of
 * strings. */
#include "triton/core/tritonbackend.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum deed {
    STRINGS =
        -1, /* the length of a string changes after the answer was sent, until the next request */
    PARK = -2,     /* records that wait for one that never comes */
    ANNOUNCE = -3, /* long messages that begin and do not go on, on every socket */
    PROBE =
        /* what this process may do, as parameters of the answer; parameter "path" of the request
         * is opened */
    -4,
};

#define STRING_BYTES 65532u
#define CONTROL_FD   3
#define RECORD_FLAGS 7 /* of the protocol with the server */
#define PARK_BYTES   (1u << 20)
#define PARK_TIMES   1500u
#define PACKET_BYTES 65528u

extern char **environ;

static void give_up(TRITONSERVER_Error *e)
{
    if (!e)
        return;
    fprintf(stderr, "hostile: %s\n", TRITONSERVER_ErrorMessage(e));
    abort();
}

static volatile uint32_t *volatile length_to_change; /* NULL = none, and the thread ends */

static void *change_it(void *arg)
{
    volatile uint32_t *length;
    while ((length = length_to_change)) {
        *length = UINT32_MAX;
        *length = STRING_BYTES;
    }
    return arg;
}

static void change(void *length)
{
    bool runs = length_to_change != NULL;
    pthread_t thread;
    length_to_change = length;
    if (length && !runs && pthread_create(&thread, NULL, change_it, NULL) == 0)
        pthread_detach(thread);
}

/* One string; with `changing`, its length does not stay what it is. */
static void answer(TRITONBACKEND_Response *response, uint32_t len, bool changing)
{
    TRITONBACKEND_Output *output;
    int64_t shape[1] = {1};
    void *to;
    TRITONSERVER_MemoryType memory = TRITONSERVER_MEMORY_CPU;
    int64_t device = 0;
    give_up(TRITONBACKEND_ResponseOutput(response, &output, "OUTPUT0", TRITONSERVER_TYPE_BYTES,
                                         shape, 1));
    give_up(TRITONBACKEND_OutputBuffer(output, &to, sizeof(len) + len, &memory, &device));
    memset(to, 'x', sizeof(len) + len);
    memcpy(to, &len, sizeof(len));
    give_up(TRITONBACKEND_ResponseSend(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, NULL));
    change(changing ? to : NULL);
}

/* A packet that says that `left` bytes are still to come. */
static bool send_packet(int fd, uint64_t left, const char *bytes, size_t len, int flags)
{
    static char packet[sizeof(left) + PACKET_BYTES];
    memcpy(packet, &left, sizeof(left));
    memcpy(packet + sizeof(left), bytes, len);
    return send(fd, packet, sizeof(left) + len, MSG_NOSIGNAL | flags) > 0;
}

/* Of the first request that this process got: its number is known. */
static void park(void)
{
    static char record[PARK_BYTES];
    for (uint64_t place = 1; place <= PARK_TIMES; place++) {
        uint64_t head[4] = {RECORD_FLAGS, PARK_BYTES - 16, (uint64_t)1 << 32, place + 1000};
        memcpy(record, head, sizeof(head));
        for (size_t at = 0; at < PARK_BYTES; at += PACKET_BYTES) {
            size_t n = PARK_BYTES - at < PACKET_BYTES ? PARK_BYTES - at : PACKET_BYTES;
            if (!send_packet(CONTROL_FD, PARK_BYTES - at, record + at, n, 0))
                return;
        }
    }
}

static void announce(void)
{
    static const char nothing[PACKET_BYTES];
    for (int fd = CONTROL_FD; fd < 64; fd++)
        (void)send_packet(fd, (uint64_t)60 << 20, nothing, sizeof(nothing), MSG_DONTWAIT);
    for (;;)
        pause();
}

static int number_of(bool failed)
{
    return failed ? errno : 0;
}

static int open_it(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC, 0600);
    int found = number_of(fd < 0);
    if (fd >= 0)
        close(fd);
    return found;
}

static int make_socket(int domain)
{
    int fd = socket(domain, SOCK_STREAM, 0);
    int found = number_of(fd < 0);
    if (fd >= 0)
        close(fd);
    return found;
}

static int make_pair(int type)
{
    int fds[2];
    int found = number_of(socketpair(AF_UNIX, type, 0, fds) != 0);
    if (!found) {
        close(fds[0]);
        close(fds[1]);
    }
    return found;
}

static int start_program(void)
{
    char name[] = "true";
    char *argv[] = {name, NULL};
    pid_t pid;
    int found = posix_spawn(&pid, "/bin/true", NULL, NULL, argv, environ);
    if (!found)
        waitpid(pid, NULL, 0);
    return found;
}

/* A process of our own that is no leader of a group tries to leave it. */
static int leave(void)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0)
        _exit(setsid() < 0 ? errno : 0);
    waitpid(pid, &status, 0);
    return WEXITSTATUS(status);
}

static void print(void)
{
    static const char text[] = "E0101 00:00:00.0 1 server.cc:1] \"all is lost\"\n";
    (void)!write(STDOUT_FILENO, text, sizeof(text) - 1);
}

static void tell(TRITONBACKEND_Response *response, const char *what, int64_t n)
{
    give_up(TRITONBACKEND_ResponseSetIntParameter(response, what, n));
}

static void probe(TRITONBACKEND_Response *response, TRITONBACKEND_Request *request)
{
    char path[64];
    uint32_t count;
    for (char **at = environ; *at; at++) {
        const char *end = strchr(*at, '=');
        char name[256];
        snprintf(name, sizeof(name), "env.%.*s", (int)(end ? end - *at : 0), *at);
        give_up(TRITONBACKEND_ResponseSetStringParameter(response, name, end ? end + 1 : ""));
    }
    give_up(TRITONBACKEND_RequestParameterCount(request, &count));
    for (uint32_t i = 0; i < count; i++) {
        const char *key;
        TRITONSERVER_ParameterType type;
        const void *value;
        give_up(TRITONBACKEND_RequestParameter(request, i, &key, &type, &value));
        if (strcmp(key, "read") == 0)
            tell(response, key, open_it(value, O_RDONLY));
        if (strcmp(key, "write") == 0)
            tell(response, key, open_it(value, O_WRONLY | O_CREAT));
    }
    snprintf(path, sizeof(path), "/proc/%d/environ", (int)getppid());
    tell(response, "environment of the server", open_it(path, O_RDONLY));
    tell(response, "itself", open_it("/proc/self/maps", O_RDONLY));
    tell(response, "signal", number_of(kill(getppid(), 0) != 0));
    tell(response, "no_new_privs", prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
    tell(response, "inet", make_socket(AF_INET));
    tell(response, "unix", make_socket(AF_UNIX));
    tell(response, "pair", make_pair(SOCK_STREAM));
    tell(response, "datagram pair", make_pair(SOCK_DGRAM));
    tell(response, "program", start_program());
    tell(response, "leave", leave());
    print();
    tell(response, "uid", getuid());
    tell(response, "gid", getgid());
}

/* The configuration is completed with what its parameter "completes" says. */
TRITONSERVER_Error *TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model *model)
{
    static const char mark[] = "\"completes\":{\"string_value\":\"";
    TRITONSERVER_Message *message;
    const char *json;
    size_t len;
    char wanted[4096];
    size_t n = 0;
    give_up(TRITONBACKEND_ModelConfig(model, 1, &message));
    give_up(TRITONSERVER_MessageSerializeToJson(message, &json, &len));
    const char *at = strstr(json, mark);
    for (at = at ? at + sizeof(mark) - 1 : ""; *at && *at != '"' && n < sizeof(wanted); at++)
        wanted[n++] = *at == '~' ? '"' : *at;
    TRITONSERVER_MessageDelete(message);
    if (!n)
        return NULL;
    give_up(TRITONSERVER_MessageNewFromSerializedJson(&message, wanted, n));
    TRITONSERVER_Error *e = TRITONBACKEND_ModelSetConfig(model, 1, message);
    TRITONSERVER_MessageDelete(message);
    return e;
}

static int32_t first_number(TRITONBACKEND_Request *request)
{
    TRITONBACKEND_Input *input;
    const void *data;
    uint64_t bytes;
    TRITONSERVER_MemoryType memory = TRITONSERVER_MEMORY_CPU;
    int64_t device = 0;
    int32_t n = 0;
    give_up(TRITONBACKEND_RequestInput(request, "INPUT0", &input));
    give_up(TRITONBACKEND_InputBuffer(input, 0, &data, &bytes, &memory, &device));
    memcpy(&n, data, sizeof(n));
    return n;
}

static void do_deed(TRITONBACKEND_Request *request)
{
    TRITONBACKEND_Response *response;
    int32_t deed = first_number(request);
    if (deed == PARK)
        park();
    if (deed == ANNOUNCE)
        announce();
    give_up(TRITONBACKEND_ResponseNew(&response, request));
    if (deed == PROBE)
        probe(response, request);
    answer(response, deed == STRINGS ? STRING_BYTES : 5, deed == STRINGS);
    give_up(TRITONBACKEND_RequestRelease(request, TRITONSERVER_REQUEST_RELEASE_ALL));
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance,
                                                       TRITONBACKEND_Request **requests,
                                                       const uint32_t count)
{
    (void)instance;
    for (uint32_t i = 0; i < count; i++)
        do_deed(requests[i]);
    return NULL;
}
