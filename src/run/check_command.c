#include "run/check_command.h"

#include "base/err_tell.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "repo/check/check.h"
#include "run/check_load.h"
#include "server/options/options.h"
#include "server/rooms.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MAX_TIMEOUT_SECS 86400

static const char usage[] =
    "usage: nereid check REPOSITORY... [--json] [--load] [--load-timeout=SECONDS] "
    "[OPTION=VALUE...]\n"
    "\n"
    "Reads model repositories without serving them and prints every problem with its place and\n"
    "its mend. OPTION: one of the server's, e.g. --backend-directory=DIRECTORY,\n"
    "--strict-model-config=true, --model-config-name=NAME, --model-namespacing=true.\n"
    "\n"
    "  --load                  also load each model, one after the other, in a process of its "
    "own,\n"
    "                          and unload it: what its backend says of its files. Without it no\n"
    "                          file of a model is opened but its configuration, and labels and\n"
    "                          tensors that this names.\n"
    "  --load-timeout=SECONDS  how long one model may take for that (120)\n"
    "  --json                  print the problems as one JSON object\n"
    "\n"
    "Exit status: 0 no problem, 1 problems, 2 wrong command line.\n";

/* The arguments of `nereid check`. */
struct command {
    bool json, help, load;
    uint32_t timeout_secs;
    /* set in a child process: load this model, and report the result to the parent */
    const char *one;
    const char **server; /* the arguments for a server: its options, and the repositories */
    int server_count;
};

static const char *value_of(const char *argument, const char *name)
{
    size_t len = strlen(name);
    return strncmp(argument, name, len) == 0 && argument[len] == '=' ? argument + len + 1 : NULL;
}

static struct err *command_read_timeout(struct command *c, const char *value)
{
    char end;
    bool digits = value[0] && strspn(value, "0123456789") == strlen(value);
    if (digits && sscanf(value, "%6" SCNu32 "%c", &c->timeout_secs, &end) == 1 && c->timeout_secs &&
        c->timeout_secs <= MAX_TIMEOUT_SECS)
        return NULL;
    return err_new(STATUS_INVALID_ARG,
                   "option --load-timeout: expected a number of seconds from 1 to %d, found '%s'",
                   MAX_TIMEOUT_SECS, value);
}

static struct err *command_read_argument(struct command *c, const char *argument)
{
    const char *value;
    if (strcmp(argument, "--json") == 0)
        c->json = true;
    else if (strcmp(argument, "--load") == 0)
        c->load = true;
    else if (strcmp(argument, "--help") == 0)
        c->help = true;
    else if (strcmp(argument, "--strict-model-config") == 0)
        c->server[c->server_count++] = "--strict-model-config=true";
    else if (strcmp(argument, "--model-namespacing") == 0)
        c->server[c->server_count++] = "--model-namespacing=true";
    else if ((value = value_of(argument, "--load-timeout")))
        return command_read_timeout(c, value);
    else if ((value = value_of(argument, CHECK_LOAD_ONE)))
        c->one = value;
    else if (argument[0] == '-' && !strchr(argument, '='))
        return err_new(STATUS_INVALID_ARG, "unknown argument '%s', see nereid check --help",
                       argument);
    else {
        if (argument[0] != '-')
            c->server[c->server_count++] = "--model-repository";
        c->server[c->server_count++] = argument;
    }
    return NULL;
}

static int check_and_print(const struct command *c, const struct options *o)
{
    struct check_load load = {
        .arguments = c->server, .argument_count = c->server_count, .timeout_secs = c->timeout_secs};
    struct check_settings s = {.paths = o->repositories,
                               .path_count = o->repository_count,
                               .config_name = o->model_config_name,
                               .strict = o->strict_model_config,
                               .namespacing = o->model_namespacing,
                               .features = &rooms_list,
                               .backend_directory = o->backend_directory,
                               .agent_directory = o->repoagent_directory,
                               .load = c->load ? check_load_model : NULL,
                               .arg = &load};
    struct check_report report;
    struct strbuf text = STRBUF_INIT;
    check_repositories(&s, &report);
    check_print(&report, c->json, &text);
    fputs(strbuf_str(&text), stdout);
    int status = report.count ? 1 : 0;
    strbuf_fini(&text);
    check_report_fini(&report);
    return status;
}

static struct err *check_together(const struct command *c, const struct options *o)
{
    if (!c->one && !o->repository_count)
        return err_new(STATUS_INVALID_ARG,
                       "no repository is given: name a directory of model directories");
    if (c->load && o->model_namespacing)
        return err_new(STATUS_INVALID_ARG, "--load and --model-namespacing: models of one name "
                                           "cannot be loaded one by one; leave out one of them");
    return NULL;
}

static struct err *run_command(const struct command *c, int *ret_status)
{
    struct options *o = mem_alloc(sizeof(*o));
    enum options_action action;
    options_defaults(o);
    struct err *e = options_parse(c->server_count, (char *const *)(uintptr_t)c->server, o, &action);
    if (!e)
        e = check_together(c, o);
    if (!e)
        *ret_status = c->one ? check_load_here(o, c->one) : check_and_print(c, o);
    options_fini(o);
    mem_free(o);
    return e;
}

int check_command(int argc, char **argv)
{
    struct command c = {.timeout_secs = 120};
    c.server = mem_alloc((2 * (size_t)argc + 1) * sizeof(char *));
    c.server[c.server_count++] = "nereid";
    struct err *e = NULL;
    for (int i = 1; i < argc && !e; i++)
        e = command_read_argument(&c, argv[i]);
    int status = 2;
    if (!e && (c.help || argc < 2)) {
        fputs(usage, c.help ? stdout : stderr);
        status = c.help ? 0 : 2;
    } else if (!e) {
        e = run_command(&c, &status);
    }
    err_tell("nereid check", e);
    mem_free(c.server);
    return status;
}
