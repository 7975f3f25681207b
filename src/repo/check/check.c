#include "repo/check/check.h"

#include "base/log_text.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "cloud/cloud.h"
#include "codec/json_out.h"
#include "codec/pb_utf8.h"
#include "model/config.h"
#include "os/files/file.h"
#include "repo/check/check_priv.h"
#include "repo/load/local.h"

#include <string.h>

void check_add(struct check *c, const char *model, const char *place, const char *what,
               const char *mend)
{
    struct check_report *r = c->report;
    r->problems = mem_realloc(r->problems, (r->count + 1) * sizeof(*r->problems));
    r->problems[r->count++] = (struct check_problem){.model = mem_strdup(model),
                                                     .place = mem_strdup(place),
                                                     .what = mem_strdup(what),
                                                     .mend = mem_strdup(mend)};
}

/* The length of a position such as ":12:3" after a path; 0 if there is none. */
static size_t position_len(const char *text)
{
    size_t len = 0;
    while (text[len] == ':' && text[len + 1] >= '0' && text[len + 1] <= '9')
        len += 1 + strspn(text + len + 1, "0123456789");
    return text[len] == ':' ? len : 0;
}

void check_add_error(struct check *c, const char *model, const char *path, struct err *e,
                     const char *mend)
{
    const char *what = err_message(e);
    size_t len = strlen(path);
    size_t position = strncmp(what, path, len) == 0 ? position_len(what + len) : 0;
    char *place = position ? mem_strndup(what, len + position) : mem_strdup(path);
    if (position)
        what += len + position + 1 + strspn(what + len + position + 1, " ");
    check_add(c, model, place, what, mend);
    mem_free(place);
    err_free(e);
}

/* The configuration as written, or an empty one; NULL if it cannot be read. */
static struct Inference__ModelConfig *read_written_config(struct check *c, const char *model,
                                                          const char *dir, char **ret_path)
{
    char *text;
    char *path;
    size_t len;
    struct Inference__ModelConfig *proto = NULL;
    struct err *e = local_read_config(dir, c->settings->config_name, &text, &len, &path);
    if (e) {
        check_add_error(c, model, dir, e, "make config.pbtxt a readable file");
        return NULL;
    }
    if (text)
        e = config_parse_text(text, len, path, &proto);
    else if (c->settings->strict)
        e = err_new(STATUS_NOT_FOUND, "there is no configuration");
    else
        proto = config_new_proto();
    if (e)
        check_add_error(c, model, path, e,
                        text ? "correct the file at this place"
                             : "write it, or leave --strict-model-config away");
    mem_free(text);
    *ret_path = path;
    return proto;
}

static void free_checked_model(struct check_model *m)
{
    config_free_proto(m->proto);
    mem_free(m->name);
    mem_free(m->title);
    mem_free(m->dir);
    mem_free(m->config);
    mem_free(m);
}

static void check_load(struct check *c, const struct check_model *m)
{
    struct err *e = c->settings->load(c->settings->arg, m->name);
    if (e)
        check_add_error(c, m->name, m->dir, e,
                        "correct the model's files or its configuration, and check again");
}

static void check_served_name(struct check *c, const char *model, const char *dir)
{
    char *name = log_text_shown(model), *place = log_text_shown(dir);
    check_add(c, name, place, "the name is not UTF-8, so no client could ask for this model",
              "rename the directory");
    mem_free(place);
    mem_free(name);
}

/* Checks one model. space: "" without namespacing. */
static void check_one(struct check *c, const char *space, const char *model, const char *dir)
{
    c->report->models++;
    if (!pb_utf8_valid(model, strlen(model))) {
        check_served_name(c, model, dir);
        return;
    }
    size_t before = c->report->count;
    struct strbuf title = STRBUF_INIT;
    strbuf_printf(&title, "%s%s%s", space, *space ? "::" : "", model);
    bool twice = map_get(&c->models, title.data, title.len) != NULL;
    if (twice)
        check_add(c, model, dir, "model appears in two or more repositories",
                  "give one of them another name, or remove it");
    struct check_model *m = MEM_NEW(struct check_model);
    *m = (struct check_model){.space = space,
                              .name = mem_strdup(model),
                              .title = strbuf_take(&title),
                              .dir = mem_strdup(dir)};
    m->proto = read_written_config(c, model, dir, &m->config);
    if (m->proto)
        check_files_model(c, m);
    m->bad = c->report->count > before;
    if (!m->proto || twice) {
        free_checked_model(m);
        return;
    }
    map_put(&c->models, m->title, strlen(m->title), m);
    c->all = mem_realloc(c->all, (c->count + 1) * sizeof(struct check_model *));
    c->all[c->count++] = m;
}

/* What takes all models to be known, and loads what is right so far. */
static void check_all_together(struct check *c)
{
    for (size_t i = 0; i < c->count; i++) {
        size_t before = c->report->count;
        check_ensembles_model(c, c->all[i]);
        c->all[i]->bad |= c->report->count > before;
    }
    for (size_t i = 0; c->settings->load && i < c->count; i++)
        if (!c->all[i]->bad)
            check_load(c, c->all[i]);
}

void check_repositories(const struct check_settings *s, struct check_report *ret)
{
    *ret = (struct check_report){0};
    struct check c = {.settings = s, .report = ret};
    for (size_t p = 0; p < s->path_count; p++) {
        struct local_names names;
        struct err *e = cloud_is(s->paths[p]) ? err_new(STATUS_UNSUPPORTED,
                                                        "repositories in the cloud are not checked")
                                              : local_models(s->paths[p], &names);
        if (e) {
            check_add_error(&c, "", s->paths[p], e, "name a directory of model directories");
            continue;
        }
        if (local_look(s->paths[p]) == LOCAL_MODEL) {
            check_add(&c, "", s->paths[p],
                      "this looks like the directory of one model, not like a repository",
                      "name the directory above it, in which each model has a directory");
            local_names_fini(&names);
            continue;
        }
        if (!names.count)
            check_add(&c, "", s->paths[p], "there is no model in it",
                      "make a directory for each model: MODEL/1/ with the model's file in it");
        for (size_t i = 0; i < names.count; i++) {
            char *dir = file_join(s->paths[p], names.names[i]);
            check_one(&c, s->namespacing ? s->paths[p] : "", names.names[i], dir);
            mem_free(dir);
        }
        local_names_fini(&names);
    }
    check_all_together(&c);
    for (size_t i = 0; i < c.count; i++)
        free_checked_model(c.all[i]);
    mem_free(c.all);
    map_fini(&c.models);
}

void check_report_fini(struct check_report *r)
{
    for (size_t i = 0; i < r->count; i++) {
        mem_free(r->problems[i].model);
        mem_free(r->problems[i].place);
        mem_free(r->problems[i].what);
        mem_free(r->problems[i].mend);
    }
    mem_free(r->problems);
    *r = (struct check_report){0};
}

static void put_report_member(struct strbuf *sb, const char *key, const char *value)
{
    char *shown = log_text_shown(value);
    strbuf_printf(sb, "\"%s\":", key);
    json_out_put(sb, shown);
    mem_free(shown);
}

void check_print(const struct check_report *r, bool json, struct strbuf *sb)
{
    if (json)
        strbuf_printf(sb, "{\"models\":%zu,\"problems\":[", r->models);
    for (size_t i = 0; i < r->count; i++) {
        const struct check_problem *p = &r->problems[i];
        if (json) {
            strbuf_puts(sb, i ? ",{" : "{");
            put_report_member(sb, "model", p->model);
            strbuf_putc(sb, ',');
            put_report_member(sb, "place", p->place);
            strbuf_putc(sb, ',');
            put_report_member(sb, "problem", p->what);
            strbuf_putc(sb, ',');
            put_report_member(sb, "mend", p->mend);
            strbuf_putc(sb, '}');
        } else {
            log_text_put_tame(sb, p->place);
            strbuf_puts(sb, ": ");
            log_text_put_tame(sb, p->what);
            strbuf_puts(sb, "\n    mend: ");
            log_text_put_tame(sb, p->mend);
            strbuf_putc(sb, '\n');
        }
    }
    if (json)
        strbuf_puts(sb, "]}\n");
    else
        strbuf_printf(sb, "%zu models, %zu problems\n", r->models, r->count);
}
