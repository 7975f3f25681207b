#include "run/check_load.h"

#include "base/mem.h"
#include "base/strbuf.h"
#include "os/files/beside.h"
#include "os/packet.h"
#include "os/process/spawn.h"
#include "repo/repo.h"
#include "server/log_files.h"
#include "server/server.h"

#include <string.h>
#include <unistd.h>

/* The message from the child: a status of struct err, and the error's text. If the model loaded,
 * the child sends nothing. */
struct verdict {
    enum status status;
    char message[4096];
};

static struct err *read_verdict(int fd, const char *model, int status)
{
    struct verdict v;
    ssize_t got = packet_receive(fd, &v, sizeof(v) - 1, NULL, false);
    if (got > (ssize_t)offsetof(struct verdict, message)) {
        while (((char *)&v)[got - 1] == '\n')
            got--;
        ((char *)&v)[got] = '\0';
        return err_new(v.status, "%s", v.message);
    }
    if (status == 0)
        return NULL;
    struct strbuf why = STRBUF_INIT;
    spawn_tell(&why, status);
    struct err *e = err_new(STATUS_INTERNAL, "the process that loaded model '%s' ended with %s",
                            model, strbuf_str(&why));
    strbuf_fini(&why);
    return e;
}

static struct err *await(const struct check_load *l, const char *model, struct spawn *child, int fd)
{
    bool ended = spawn_wait(child, clock_now_ns() + TIME_S(l->timeout_secs));
    if (!ended)
        spawn_kill(child);
    int status = spawn_reap(child);
    if (ended)
        return read_verdict(fd, model, status);
    return err_new(
        STATUS_INTERNAL,
        "model '%s' was not loaded and unloaded within %u seconds; --load-timeout=SECONDS "
        "gives it more",
        model, l->timeout_secs);
}

struct err *check_load_model(void *arg, const char *model)
{
    const struct check_load *l = arg;
    char *program = beside_program("nereid");
    if (!program)
        return err_new(STATUS_INTERNAL,
                       "the program 'nereid' was not found beside its library: nothing was loaded");
    struct strbuf one = STRBUF_INIT;
    strbuf_printf(&one, CHECK_LOAD_ONE "=%s", model);
    const char **argv = mem_zalloc(((size_t)l->argument_count + 3) * sizeof(*argv));
    argv[0] = program;
    argv[1] = "check";
    for (int i = 1, at = 2; i < l->argument_count; i++)
        if (strcmp(l->arguments[i], "--model-repository") != 0)
            argv[at++] = l->arguments[i];
    int at = 0;
    while (argv[at])
        at++;
    argv[at] = strbuf_str(&one);
    int fds[2];
    struct spawn child;
    struct err *e = packet_pair(fds);
    if (!e) {
        e = spawn_start(program, argv, (const char *const *)spawn_environment(), fds[1], &child);
        packet_close(fds[1]);
        if (!e)
            e = await(l, model, &child, fds[0]);
        packet_close(fds[0]);
    }
    mem_free(argv);
    strbuf_fini(&one);
    mem_free(program);
    return e;
}

static struct err *load_and_unload(const struct options *o, const char *model)
{
    struct server *s;
    struct err *e = server_new(o, &s);
    if (e)
        return e;
    e = server_start(s);
    if (!e)
        e = server_load(s);
    if (!e && server_serve(s))
        e = repo_load_wait(s->repo, &(struct repo_load){.model = model});
    server_stop(s);
    server_free(s);
    return e;
}

int check_load_here(const struct options *asked, const char *model)
{
    spawn_die_with_parent();
    spawn_print_to(STDERR_FILENO); /* standard output carries only the parent's report */
    struct options o = *asked;
    o.control_mode = OPTIONS_CONTROL_EXPLICIT;
    o.load_model_count = 0;
    o.log_info = o.log_warning = o.log_error = false;
    struct err *e = log_files_apply(&o);
    if (!e)
        e = load_and_unload(&o, model);
    if (!e)
        return 0;
    struct verdict v = {.status = err_code(e)};
    size_t len = strlen(err_message(e));
    len = len < sizeof(v.message) - 1 ? len : sizeof(v.message) - 1;
    memcpy(v.message, err_message(e), len);
    struct iovec piece = {&v, offsetof(struct verdict, message) + len};
    packet_send(SPAWN_CONTROL_FD, &piece, 1, NULL, 0, true);
    err_free(e);
    return 1;
}
