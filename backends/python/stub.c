#include "stub.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/berr.h"
#include "process.h"

static const uint64_t SECOND_NS = 1000000000;

enum {
    HIGH_DESCRIPTOR = 10, /* above those that a stub gets */
    LOOK_RECORDS = 16,    /* what a loop reads at a time: a model may tell without end */
    STOPPED_LOOKS = 5,    /* a second apart: a stub that stood still at each is not coming back */
};

struct late {
    struct late *next;
    uint32_t kind;
    uint64_t id;
    size_t bytes;
    char payload[];
};

uint64_t stub_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

struct stub *stub_ref(struct stub *stub)
{
    atomic_fetch_add(&stub->refs, 1);
    return stub;
}

static void close_one(int *descriptor)
{
    if (*descriptor >= 0)
        close(*descriptor);
    *descriptor = -1;
}

void stub_unref(struct stub *stub)
{
    if (!stub || atomic_fetch_sub(&stub->refs, 1) > 1)
        return;
    if (stub->base)
        munmap(stub->base, LINK_MAPPED);
    close_one(&stub->process);
    close_one(&stub->memory);
    close_one(&stub->life);
    while (stub->late) {
        struct late *next = stub->late->next;
        free(stub->late);
        stub->late = next;
    }
    arena_fini(&stub->arena);
    pthread_mutex_destroy(&stub->reading);
    pthread_mutex_destroy(&stub->sending);
    free(stub->scratch);
    free(stub->name);
    free(stub);
}

/* Ends a stub that breaks the rules of the memory that it shares. */
static void stub_broke(struct stub *stub, const char *what)
{
    if (atomic_exchange(&stub->dead, true))
        return;
    berr_log(berr_new(TRITONSERVER_ERROR_INTERNAL, "the process of '%s' %s", stub->name, what),
             "python");
    stub_kill(stub);
}

/* -- to the stub -- */

static bool stub_put_late(struct stub *stub)
{
    while (stub->late) {
        struct late *first = stub->late;
        if (!link_put(&stub->down, first->kind, first->id, first->payload, first->bytes, true))
            return false;
        stub->late = first->next;
        free(first);
    }
    stub->late_end = &stub->late;
    return true;
}

static void stub_room(struct stub *stub)
{
    pthread_mutex_lock(&stub->sending);
    if (!stub_put_late(stub)) {
        link_ask_room(&stub->down);
        stub_put_late(stub); /* what was read meanwhile is not told */
    }
    bool broken = link_is_broken(&stub->down);
    pthread_mutex_unlock(&stub->sending);
    if (broken)
        stub_broke(stub, "read more than it was sent");
}

static bool stub_put(struct stub *stub, uint32_t kind, uint64_t id, const void *payload,
                     size_t bytes)
{
    pthread_mutex_lock(&stub->sending);
    bool done = !stub->late && link_put(&stub->down, kind, id, payload, bytes, true);
    struct late *late = done ? NULL : malloc(sizeof *late + bytes);
    if (late) {
        *late = (struct late){.kind = kind, .id = id, .bytes = bytes};
        if (bytes)
            memcpy(late->payload, payload, bytes);
        *stub->late_end = late;
        stub->late_end = &late->next;
    }
    pthread_mutex_unlock(&stub->sending);
    if (late)
        stub_room(stub);
    return done || late;
}

bool stub_send(struct stub *stub, uint32_t kind, uint64_t id, const void *payload, size_t bytes)
{
    if (atomic_load(&stub->dead))
        return false;
    if (bytes <= LINK_RECORD_MAX)
        return stub_put(stub, kind, id, payload, bytes);
    struct link_far far = {.at = arena_take(&stub->arena, bytes), .bytes = bytes};
    if (!far.at)
        return false;
    memcpy(stub->base + far.at, payload, bytes);
    if (stub_put(stub, kind | LINK_FAR, id, &far, sizeof far))
        return true;
    arena_give(&stub->arena, far.at);
    return false;
}

uint64_t stub_mark(struct stub *stub)
{
    pthread_mutex_lock(&stub->sending);
    uint64_t mark = stub->down.position;
    pthread_mutex_unlock(&stub->sending);
    return mark;
}

bool stub_was_read(struct stub *stub, uint64_t mark)
{
    pthread_mutex_lock(&stub->sending);
    bool read = !stub->late && link_was_read(&stub->down, mark);
    pthread_mutex_unlock(&stub->sending);
    return read;
}

/* -- from the stub -- */

static bool stub_copy(struct stub *stub, uint64_t at, void *to, uint64_t bytes, bool in_arena)
{
    if (!in_arena)
        return stub->readable && process_read(stub->pid, at, to, bytes);
    if (!arena_holds(&stub->arena, at, bytes))
        return false;
    memcpy(to, stub->base + at, bytes);
    return true;
}

bool stub_fetch(struct stub *stub, const struct wire_tensor *tensor, void *to)
{
    if (tensor->bytes == 0)
        return true;
    if (tensor->place == WIRE_GPU)
        return false; /* no stub lends any */
    if (tensor->place != WIRE_INLINE)
        return stub_copy(stub, tensor->where, to, tensor->bytes, tensor->place == WIRE_ARENA);
    memcpy(to, tensor->data, tensor->bytes);
    return true;
}

static void stub_drop_scratch(struct stub *stub)
{
    free(stub->scratch);
    stub->scratch = NULL;
}

static bool stub_scratch(struct stub *stub, size_t bytes)
{
    if (stub->scratch && stub->scratch_bytes >= bytes)
        return true;
    size_t room = bytes < LINK_RECORD_MAX ? LINK_RECORD_MAX : bytes;
    stub_drop_scratch(stub);
    stub->scratch = malloc(room);
    stub->scratch_bytes = stub->scratch ? room : 0;
    return stub->scratch != NULL;
}

/* Copies a record into this server's memory. */
static bool stub_take(struct stub *stub, const struct link_record *record, struct heard *ret_heard)
{
    struct link_far far = {.bytes = record->bytes};
    bool is_far = record->kind & LINK_FAR;
    if (is_far && record->bytes < sizeof far)
        return false;
    if (is_far)
        memcpy(&far, record->payload, sizeof far);
    if (far.bytes > LINK_FAR_MAX || !stub_scratch(stub, far.bytes))
        return false;
    if (!is_far)
        memcpy(stub->scratch, record->payload, far.bytes);
    else if (!stub_copy(stub, far.at, stub->scratch, far.bytes, !stub->readable))
        return false;
    *ret_heard = (struct heard){.kind = record->kind & ~(uint32_t)(LINK_FAR | LINK_KEPT),
                                .id = record->id,
                                .bytes = far.bytes,
                                .data = stub->scratch};
    return true;
}

static void stub_handle(struct stub *stub, struct heard *heard)
{
    if (heard->kind == LINK_HELLO) {
        char word[sizeof(void *)];
        stub->readable = process_read(stub->pid, heard->id, word, sizeof word);
        if (!stub->readable)
            atomic_fetch_or(link_flags(stub->base), LINK_NO_READING);
        stub->greeted = true;
    } else if (heard->kind == LINK_FREE) {
        if (!arena_give(&stub->arena, heard->id) && stub->heard)
            stub->heard(stub->of, heard);
    } else if (heard->kind == LINK_ROOM) {
        stub_room(stub);
    } else if (stub->heard) {
        stub->heard(stub->of, heard);
    }
}

/* Handles a record that link_peek has shown. False: it breaks the rules. */
static bool stub_hear_one(struct stub *stub, const struct link_record *record)
{
    struct heard heard;
    if (!stub_take(stub, record, &heard))
        return false;
    bool kept = record->kind & LINK_KEPT;
    link_done(&stub->up, record);
    stub_handle(stub, &heard);
    if (!heard.data)
        stub->scratch = NULL; /* somebody has it */
    else if (stub->scratch_bytes > LINK_RECORD_MAX)
        stub_drop_scratch(stub); /* a large one is rare */
    if (kept)
        stub_send(stub, LINK_RELEASE, record->id, NULL, 0);
    return true;
}

/* Handles what is there; ends a stub that breaks the rules. */
static void stub_hear(struct stub *stub)
{
    struct link_record record;
    int got;
    while ((got = link_peek(&stub->up, &record)) > 0 && stub_hear_one(stub, &record))
        ;
    if (got != 0)
        stub_broke(stub, "sent what is no message");
}

static void stub_attend(struct stub *stub)
{
    stub->parted = false;
    stub->looked_ns = 0;
    stub->stopped = 0;
    link_attend(&stub->up);
}

void stub_hold(struct stub *stub)
{
    pthread_mutex_lock(&stub->reading);
    stub_attend(stub);
}

bool stub_try_hold(struct stub *stub)
{
    bool held = pthread_mutex_trylock(&stub->reading) == 0;
    if (held)
        stub_attend(stub);
    return held;
}

void stub_leave(struct stub *stub)
{
    if (!link_listen(&stub->up))
        link_call(&stub->up);
    pthread_mutex_unlock(&stub->reading);
}

void stub_part(struct stub *stub)
{
    stub->parted = true;
    if (!link_poll(&stub->up))
        link_ring(&stub->up);
    pthread_mutex_unlock(&stub->reading);
}

void stub_turn_away(struct stub *stub)
{
    stub->parted = true;
    pthread_mutex_unlock(&stub->reading);
}

/* Whether a record is no more than its bytes: no tensor elsewhere, no request to another model. */
static bool stub_is_short(const struct link_record *record)
{
    return !(record->kind & (LINK_FAR | LINK_KEPT)) && record->kind != LINK_INFER;
}

enum stub_look stub_look(struct stub *stub, const bool *done)
{
    struct link_record record;
    int got, left = LOOK_RECORDS;
    bool dead = atomic_load(&stub->dead); /* what it sent before is there now */
    while ((got = link_peek(&stub->up, &record)) > 0 && left-- > 0 && stub_is_short(&record) &&
           stub_hear_one(stub, &record))
        ;
    if (*done)
        return STUB_LOOK_DONE;
    return got != 0 || dead ? STUB_LOOK_LONG : STUB_LOOK_AGAIN;
}

void stub_let(struct stub *stub)
{
    while (!atomic_load(&stub->dead) && !link_listen(&stub->up))
        stub_hear(stub);
    pthread_mutex_unlock(&stub->reading);
}

enum stub_wait stub_wait(struct stub *stub, const bool *done, uint64_t deadline_ns)
{
    for (;;) {
        bool dead = atomic_load(&stub->dead); /* what it sent before is there now */
        stub_hear(stub);
        if (*done)
            return STUB_DONE;
        if (dead)
            return STUB_DEAD;
        uint64_t now = stub_now(), wait = SECOND_NS;
        if (deadline_ns && now >= deadline_ns)
            return STUB_LATE;
        if (!stub->looked_ns) {
            stub->looked_ns = now;
        } else if (now - stub->looked_ns >= SECOND_NS) {
            stub->stopped = process_is_stopped(stub->pid) ? stub->stopped + 1 : 0;
            stub->looked_ns = now;
        }
        if (stub->stopped >= STOPPED_LOOKS)
            return STUB_STOPPED;
        if (deadline_ns && deadline_ns - now < wait)
            wait = deadline_ns - now;
        link_sleep(&stub->up, wait);
    }
}

void stub_rename(struct stub *stub, char *name)
{
    pthread_mutex_lock(&stub->sending);
    free(stub->name);
    stub->name = name;
    pthread_mutex_unlock(&stub->sending);
}

void stub_kill(struct stub *stub)
{
    atomic_store(&stub->killed, true);
    process_kill(stub->pid);
}

/* -- the threads that wait when nobody else does -- */

/* How it ended, for who runs the server, unless the server wanted it so. */
static void stub_tell_end(struct stub *stub)
{
    siginfo_t how = {0};
    bool leaving = atomic_load(&stub->leaving);
    if (atomic_load(&stub->killed) ||
        waitid(P_PIDFD, (id_t)stub->process, &how, WEXITED | WNOWAIT) != 0)
        return;
    bool exited = how.si_code == CLD_EXITED;
    const char *signal = exited ? NULL : sigdescr_np(how.si_status);
    if (leaving && exited && how.si_status == 0)
        return;
    pthread_mutex_lock(&stub->sending);
    TRITONSERVER_Error *err =
        exited ? berr_new(TRITONSERVER_ERROR_INTERNAL,
                          "the process of '%s' has ended by itself with status %d", stub->name,
                          how.si_status)
               : berr_new(TRITONSERVER_ERROR_INTERNAL,
                          "the process of '%s' was ended by signal %d (%s)", stub->name,
                          how.si_status, signal ? signal : "unknown");
    pthread_mutex_unlock(&stub->sending);
    berr_log(err, "python");
}

static void stub_watch_end(struct stub *stub)
{
    stub_tell_end(stub);
    atomic_store(&stub->dead, true);
    link_wake(&stub->up);
    link_call(&stub->up);
    pthread_mutex_lock(&stub->reading);
    if (!atomic_load(&stub->stopping)) {
        stub_hear(stub);
        if (stub->ended)
            stub->ended(stub->of);
        if (stub->parted)
            link_ring(&stub->up);
    }
    pthread_mutex_unlock(&stub->reading);
}

/* Waits for the end of the process. */
static void *stub_watch(void *of)
{
    struct stub *stub = of;
    pthread_setname_np(pthread_self(), "python watcher");
    struct pollfd what[] = {{.fd = stub->process, .events = POLLIN},
                            {.fd = stub->life, .events = POLLIN}};
    while (poll(what, 2, -1) < 0 || !what[0].revents) {
        if (what[1].revents) {
            process_kill(stub->pid); /* it ends already, or another program took its place */
            what[1].fd = -1;
        }
    }
    stub_watch_end(stub);
    return NULL;
}

/* Something is there: reads it, or tells the loop that waits for it, whose bell the model has
 * closed. */
static void stub_answer(struct stub *stub)
{
    pthread_mutex_lock(&stub->reading);
    bool parted = stub->parted;
    pthread_mutex_unlock(&stub->reading); /* or the loop would find it held */
    if (parted) {
        link_ring(&stub->up);
    } else {
        stub_hold(stub);
        stub_let(stub);
    }
}

/* Reads what comes while nobody waits for it. */
static void *stub_listen(void *of)
{
    struct stub *stub = of;
    pthread_setname_np(pthread_self(), "python stub");
    uint32_t heard = 0;
    while (!atomic_load(&stub->dead)) {
        stub_answer(stub);
        heard = link_await(&stub->up, heard);
    }
    return NULL;
}

/* -- its life -- */

static int high(int descriptor)
{
    int moved = descriptor < 0 ? -1 : fcntl(descriptor, F_DUPFD_CLOEXEC, HIGH_DESCRIPTOR);
    if (descriptor >= 0)
        close(descriptor);
    return moved;
}

int stub_bell(void)
{
    return high(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
}

/* The memory and the descriptors. `there` is the stub's end of the life line. */
static TRITONSERVER_Error *stub_memory(struct stub *stub, const struct options *options, int bell,
                                       int *there)
{
    char name[128];
    int pair[2] = {-1, -1};
    snprintf(name, sizeof name, "%s%s", options->region_prefix, stub->name);
    stub->memory = high(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
    bool well = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0;
    stub->life = high(pair[0]);
    *there = high(pair[1]);
    /* A stub that made the file shorter would have the server read where nothing is. */
    if (!well || stub->memory < 0 || stub->life < 0 || *there < 0 ||
        ftruncate(stub->memory, (off_t)(LINK_ARENA + options->default_bytes)) != 0 ||
        fcntl(stub->memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL) != 0)
        return berr_new(TRITONSERVER_ERROR_INTERNAL, "no shared memory for '%s': %s", stub->name,
                        strerror(errno));
    void *base = mmap(NULL, LINK_MAPPED, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                      stub->memory, 0);
    if (base == MAP_FAILED)
        return berr_new(TRITONSERVER_ERROR_INTERNAL, "no address space for '%s': %s", stub->name,
                        strerror(errno));
    stub->base = base;
    link_open(base, bell, &stub->down, &stub->up);
    return arena_init(&stub->arena, stub->memory, options->default_bytes, options->growth_bytes)
               ? NULL
               : berr_no_memory();
}

static TRITONSERVER_Error *stub_process(struct stub *stub, const struct options *options,
                                        const char *activate, int there)
{
    char *script;
    if (asprintf(&script, "%s/triton_python_backend_stub.py", options->folder) < 0)
        return berr_no_memory();
    const char *python = options->executable ? options->executable : "python3";
    const char *shell = ". \"$0\" || { s=$?; echo \"'$0' failed: status $s\" >&2; exit 1; }; "
                        "exec python3 \"$@\"";
    const char *plain[] = {python, script, "3", "4", "5", NULL};
    const char *within[] = {"bash", "-c", shell, activate, script, "3", "4", "5", NULL};
    int given[PROCESS_GIVEN] = {stub->memory, there, stub->up.bell};
    TRITONSERVER_Error *err = process_start(activate ? within : plain, given, &stub->pid);
    free(script);
    if (err)
        return err;
    stub->process = (int)syscall(SYS_pidfd_open, stub->pid, 0);
    if (stub->process < 0)
        return berr_new(TRITONSERVER_ERROR_INTERNAL, "cannot watch the process of '%s': %s",
                        stub->name, strerror(errno));
    stub->watched = pthread_create(&stub->watcher, NULL, stub_watch, stub) == 0;
    stub->listened = stub->watched && pthread_create(&stub->listener, NULL, stub_listen, stub) == 0;
    if (!stub->listened)
        return berr_new(TRITONSERVER_ERROR_INTERNAL, "no threads to watch the process of '%s'",
                        stub->name);
    return NULL;
}

static TRITONSERVER_Error *stub_greet(struct stub *stub, int64_t seconds)
{
    stub_hold(stub);
    enum stub_wait came =
        stub_wait(stub, &stub->greeted, stub_now() + (uint64_t)seconds * SECOND_NS);
    stub_let(stub);
    if (came == STUB_DONE)
        return NULL;
    return berr_new(TRITONSERVER_ERROR_INTERNAL,
                    "Stub process '%s' is not healthy. It %s; see the "
                    "server's standard error.",
                    stub->name,
                    came == STUB_DEAD ? "ended before it had begun" : "did not begin in time");
}

static struct stub *stub_new(const char *name, stub_heard_fn *heard, stub_ended_fn *ended, void *of)
{
    struct stub *stub = calloc(1, sizeof *stub);
    if (!stub)
        return NULL;
    stub->refs = 1;
    stub->process = stub->memory = stub->life = -1;
    stub->late_end = &stub->late;
    stub->heard = heard;
    stub->ended = ended;
    stub->of = of;
    pthread_mutex_init(&stub->reading, NULL);
    pthread_mutex_init(&stub->sending, NULL);
    stub->name = strdup(name);
    if (stub->name)
        return stub;
    stub_unref(stub);
    return NULL;
}

TRITONSERVER_Error *stub_start(const struct options *options, const char *name,
                               const char *activate, int bell, stub_heard_fn *heard,
                               stub_ended_fn *ended, void *of, struct stub **ret_stub)
{
    int there = -1;
    struct stub *stub = stub_new(name, heard, ended, of);
    TRITONSERVER_Error *err = stub ? stub_memory(stub, options, bell, &there) : berr_no_memory();
    if (!err)
        err = stub_process(stub, options, activate, there);
    close_one(&there);
    if (!err)
        err = stub_greet(stub, options->stub_seconds);
    if (err)
        stub_end(stub);
    else
        *ret_stub = stub;
    return err;
}

void stub_end(struct stub *stub)
{
    if (!stub)
        return;
    atomic_store(&stub->stopping, true);
    if (stub->pid > 0)
        stub_kill(stub);
    if (stub->watched)
        pthread_join(stub->watcher, NULL); /* it sees the end of the process */
    if (stub->listened)
        pthread_join(stub->listener, NULL);
    atomic_store(&stub->dead, true);
    if (stub->pid > 0)
        process_end(stub->pid);
    stub_unref(stub);
}
