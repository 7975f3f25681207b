#include "run/migrate.h"

#include "base/err_tell.h"
#include "base/log_text.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "cloud/cloud.h"
#include "os/files/file.h"
#include "repo/check/check.h"
#include "repo/load/local.h"
#include "run/fronts.h"
#include "run/migrate_words.h"
#include "run/migrate_yaml.h"
#include "server/options/options.h"
#include "server/rooms.h"

#include <stdio.h>
#include <string.h>

#define MAX_FILE_BYTES ((size_t)4 << 20)

static const char usage[] =
    "usage: nereid migrate [--repository=DIRECTORY]... [--backend-directory=DIRECTORY]\n"
    "                      FILE... | -- tritonserver OPTION...\n"
    "\n"
    "Says line by line what would become of a tritonserver here: which of its options are taken,\n"
    "ignored or refused, and which of its models. Nothing is served and nothing is changed.\n"
    "What a variable holds is unknown here.\n"
    "FILE: a Compose or Kubernetes file (.yaml, .yml, .json) or a script that starts it.\n"
    "\n"
    "  --repository=DIRECTORY         where its models lie on this machine, in place of its\n"
    "                                 --model-repository\n"
    "  --backend-directory=DIRECTORY  where backends lie on this machine\n"
    "\n"
    "Exit status: 0 nothing is refused or unknown, 1 something is, 2 wrong command line.\n";

enum fate {
    FATE_TAKEN,
    FATE_IGNORED,
    FATE_REFUSED,
    FATE_UNKNOWN,
    FATES,
};

static const char *const fates[FATES] = {"taken", "ignored", "refused", "unknown"};

struct migrate {
    const char **repositories; /* --repository */
    size_t repository_count;
    const char *backends; /* NULL = ours */
    const char *file;     /* that is being read; NULL = none */
    size_t line;          /* where the words in it begin; 0 = unknown */
    unsigned found;       /* number of command lines */
    bool varies;          /* a value of this one is unknown */
    bool varies_more;     /* and in what place options may stand */
    unsigned options[FATES], models[FATES];
};

/* Prints a line and empties it. Its words may be those of files, and are no commands for the
 * terminal. */
static void migrate_print(struct strbuf *line)
{
    char *text = strbuf_take(line);
    log_text_tame(text);
    puts(text);
    mem_free(text);
}

static void migrate_tell(enum fate fate, const char *what, const char *value, const char *why)
{
    struct strbuf line = STRBUF_INIT;
    strbuf_printf(&line, "  %-8s %s%s%s%s%s", fates[fate], what, value ? "=" : "",
                  value ? value : "", why ? ": " : "", why ? why : "");
    migrate_print(&line);
}

static void tell_option(void *arg, enum options_fate fate, const char *name, const char *value,
                        const char *why)
{
    struct migrate *m = arg;
    static const enum fate of[] = {FATE_TAKEN, FATE_IGNORED, FATE_REFUSED, FATE_REFUSED};
    enum fate became = of[fate];
    char *option = mem_strndup(name, strcspn(name, "="));
    bool more = fate == OPTIONS_REFUSED && migrate_words_varies(option);
    mem_free(option);
    if (more || (fate == OPTIONS_VALUE_REFUSED && migrate_words_varies(value ? value : name))) {
        became = FATE_UNKNOWN;
        why = "what the variable or the command in it stands for is not known here";
    }
    m->varies_more = m->varies_more || more;
    m->varies = m->varies || became == FATE_UNKNOWN;
    m->options[became]++;
    migrate_tell(became, name, value, why);
}

/* Tells what is refused of all options together, if it is for certain. */
static void tell_together(struct migrate *m, bool certain, const char *what, const char *why)
{
    enum fate fate = certain ? FATE_REFUSED : FATE_UNKNOWN;
    m->options[fate]++;
    migrate_tell(fate, what, NULL, why);
}

/* Tells of each model of one repository; `report` has its problems, in the order of the models. */
static void tell_models(struct migrate *m, const char *path, const struct check_report *report)
{
    struct local_names names = {0};
    struct err *e = local_models(path, &names);
    size_t told = 0;
    for (size_t i = 0; i < report->count; i++) {
        const struct check_problem *p = &report->problems[i];
        struct strbuf why = STRBUF_INIT;
        strbuf_printf(&why, "%s; mend: %s", p->what, p->mend);
        migrate_tell(FATE_REFUSED, *p->model ? p->model : path, NULL, strbuf_str(&why));
        strbuf_fini(&why);
    }
    for (size_t i = 0; !e && i < names.count; i++) {
        bool bad = false;
        for (size_t k = 0; k < report->count && !bad; k++)
            bad = strcmp(report->problems[k].model, names.names[i]) == 0;
        if (!bad)
            migrate_tell(FATE_TAKEN, names.names[i], NULL, NULL);
        told += bad;
    }
    m->models[FATE_TAKEN] += (unsigned)(e ? 0 : names.count - told);
    m->models[FATE_REFUSED] += (unsigned)(told ? told : report->count);
    err_free(e);
    local_names_fini(&names);
}

static void look_at_repository(struct migrate *m, const char *path, const struct options *o)
{
    struct strbuf line = STRBUF_INIT;
    strbuf_printf(&line, "models of %s", path);
    migrate_print(&line);
    if (cloud_is(path) || !file_is_dir(path)) {
        m->models[FATE_UNKNOWN]++;
        migrate_tell(
            FATE_UNKNOWN, path, NULL,
            "is not on this machine: name a copy with --repository=DIRECTORY, so that its models "
            "are looked at");
        return;
    }
    struct check_settings s = {.paths = &path,
                               .path_count = 1,
                               .config_name = o->model_config_name,
                               .strict = o->strict_model_config,
                               .namespacing = o->model_namespacing,
                               .features = &rooms_list,
                               .backend_directory = o->backend_directory,
                               .agent_directory = o->repoagent_directory};
    struct check_report report;
    check_repositories(&s, &report);
    tell_models(m, path, &report);
    check_report_fini(&report);
}

/* What the options mean together. */
static void look_at_options(struct migrate *m, const struct options *o)
{
    struct err *e = fronts_check(o);
    if (e)
        tell_together(m, !m->varies, "all together", err_message(e));
    err_free(e);
    if (o->load_model_count && o->control_mode != OPTIONS_CONTROL_EXPLICIT)
        tell_together(m, !m->varies, "all together",
                      "option --load-model needs --model-control-mode=explicit as well");
}

static void tell_place(const struct migrate *m)
{
    struct strbuf line = STRBUF_INIT;
    strbuf_puts(&line, "options");
    if (m->file)
        strbuf_printf(&line, " in %s", m->file);
    if (m->file && m->line)
        strbuf_printf(&line, ", from line %zu", m->line);
    migrate_print(&line);
}

/* Looks at the options of one server, and at its models. */
static void look_at_server(void *arg, char *const *argv, size_t argc)
{
    struct migrate *m = arg;
    struct options *o = mem_alloc(sizeof(*o));
    options_defaults(o);
    const char *backends = m->backends ? m->backends : o->backend_directory;
    const char *agents = o->repoagent_directory;
    m->found++;
    m->varies = m->varies_more = false;
    tell_place(m);
    options_try((int)argc, argv, o, tell_option, m);
    look_at_options(m, o);
    if (m->backends || !file_is_dir(o->backend_directory))
        o->backend_directory = backends;
    if (!file_is_dir(o->repoagent_directory))
        o->repoagent_directory = agents;
    const char *const *paths = m->repository_count ? m->repositories : o->repositories;
    size_t count = m->repository_count ? m->repository_count : o->repository_count;
    if (!count)
        tell_together(m, !m->varies_more, "--model-repository", "is not given");
    for (size_t i = 0; i < count; i++)
        look_at_repository(m, paths[i], o);
    options_fini(o);
    mem_free(o);
}

static void look_at_words(void *arg, const struct migrate_words *words, size_t line)
{
    struct migrate *m = arg;
    m->line = line;
    if (migrate_words_servers(words, look_at_server, m))
        return;
    m->found++;
    tell_place(m);
    tell_together(m, false, "the rest", "more than 4096 words, which are not looked at");
}

static bool is_yaml(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot &&
           (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0 || strcmp(dot, ".json") == 0);
}

static struct err *look_at_file(struct migrate *m, const char *path)
{
    char *text;
    size_t len;
    struct err *e = file_read(path, MAX_FILE_BYTES, &text, &len);
    if (e)
        return e;
    unsigned before = m->found;
    m->file = path;
    if (is_yaml(path)) {
        e = err_wrap(migrate_yaml_read(text, len, look_at_words, m), "%s", path);
    } else {
        struct migrate_words words = {0};
        migrate_words_split(&words, text, len);
        look_at_words(m, &words, 0);
        migrate_words_fini(&words);
    }
    mem_free(text);
    if (!e && m->found == before)
        e = err_new(STATUS_INVALID_ARG, "%s: no command line of tritonserver found", path);
    return e;
}

/* Reads our own arguments up to "--"; files are looked at where they stand. */
static struct err *run_arguments(struct migrate *m, int argc, char **argv)
{
    static const char repository[] = "--repository=", backends[] = "--backend-directory=";
    struct err *e = NULL;
    for (int i = 1; i < argc && !e; i++) {
        if (strcmp(argv[i], "--") == 0) {
            struct migrate_words words = {.words = argv + i + 1, .count = (size_t)(argc - i - 1)};
            unsigned before = m->found;
            m->file = NULL;
            look_at_words(m, &words, 0);
            return m->found > before ? NULL
                                     : err_new(STATUS_INVALID_ARG, "behind -- a command line is "
                                                                   "expected that begins with "
                                                                   "tritonserver");
        }
        if (strncmp(argv[i], repository, strlen(repository)) == 0)
            m->repositories[m->repository_count++] = argv[i] + strlen(repository);
        else if (strncmp(argv[i], backends, strlen(backends)) == 0)
            m->backends = argv[i] + strlen(backends);
        else if (argv[i][0] == '-')
            e = err_new(STATUS_INVALID_ARG, "unknown argument '%s', see nereid migrate --help",
                        argv[i]);
        else
            e = look_at_file(m, argv[i]);
    }
    return e;
}

int migrate_command(int argc, char **argv)
{
    if (argc < 2 || strcmp(argv[1], "--help") == 0) {
        fputs(usage, argc < 2 ? stderr : stdout);
        return argc < 2 ? 2 : 0;
    }
    struct migrate m = {.repositories = mem_alloc((size_t)argc * sizeof(char *))};
    struct err *e = run_arguments(&m, argc, argv);
    int status = 2;
    if (!e && !m.found)
        e = err_new(STATUS_INVALID_ARG, "no command line is given: name a file, or give it behind "
                                        "--, see nereid migrate --help");
    if (!err_tell("nereid migrate", e)) {
        const unsigned *o = m.options, *n = m.models;
        printf("options: %u taken, %u ignored, %u refused, %u unknown; models: %u taken, %u "
               "refused, %u unknown\n",
               o[FATE_TAKEN], o[FATE_IGNORED], o[FATE_REFUSED], o[FATE_UNKNOWN], n[FATE_TAKEN],
               n[FATE_REFUSED], n[FATE_UNKNOWN]);
        status = o[FATE_REFUSED] || o[FATE_UNKNOWN] || n[FATE_REFUSED] || n[FATE_UNKNOWN];
    }
    mem_free(m.repositories);
    return status;
}
