#include "server/start_table.h"

#include "base/log_text.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "plugin/backend.h"
#include "plugin/message.h"
#include "repo/repo.h"
#include "serve/table.h"
#include "server/server.h"
#include "server/server_metadata.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS      3
#define OPTION_BYTES 4096 /* longer values are cut */
#define MOST_LOADING 20u  /* names in one line */

struct row {
    char *cells[COLUMNS];
};

struct rows {
    size_t columns;
    struct row *all;
    size_t count, room;
    size_t widths[COLUMNS];
};

/* Adds a row, and takes the last cell over. Line breaks in a cell are removed, because they
 * would break the table. */
static void start_table_add(struct rows *r, const char *first, const char *second, char *last)
{
    if (r->count == r->room) {
        r->room = r->room ? 2 * r->room : 16;
        r->all = mem_realloc(r->all, r->room * sizeof(*r->all));
    }
    struct row *row = &r->all[r->count++];
    *row = (struct row){.cells = {mem_strdup(first)}};
    if (second)
        row->cells[1] = mem_strdup(second);
    row->cells[r->columns - 1] = last;
    for (size_t i = 0; i < r->columns; i++) {
        log_text_tame(row->cells[i]);
        size_t width = strlen(row->cells[i]);
        r->widths[i] = width > r->widths[i] ? width : r->widths[i];
    }
}

static void put_divider(struct strbuf *sb, const struct rows *r)
{
    for (size_t i = 0; i < r->columns; i++) {
        strbuf_putc(sb, '+');
        for (size_t k = 0; k < r->widths[i] + 2; k++)
            strbuf_putc(sb, '-');
    }
    strbuf_puts(sb, "+\n");
}

static void start_table_put_row(struct strbuf *sb, const struct rows *r, const struct row *row)
{
    for (size_t i = 0; i < r->columns; i++)
        strbuf_printf(sb, "| %-*s ", (int)r->widths[i], row->cells[i]);
    strbuf_puts(sb, "|\n");
}

/* Prints the rows and frees them. The first row is the heading. */
static char *table_of(struct rows *r)
{
    struct strbuf sb = STRBUF_INIT;
    put_divider(&sb, r);
    start_table_put_row(&sb, r, &r->all[0]);
    put_divider(&sb, r);
    for (size_t i = 1; i < r->count; i++)
        start_table_put_row(&sb, r, &r->all[i]);
    put_divider(&sb, r);
    for (size_t i = 0; i < r->count; i++)
        for (size_t k = 0; k < COLUMNS; k++)
            mem_free(r->all[i].cells[k]);
    mem_free(r->all);
    return strbuf_take(&sb);
}

static void add_entry(struct rows *r, const char *model, const struct table_entry *e)
{
    struct strbuf version = STRBUF_INIT, status = STRBUF_INIT;
    if (e->number)
        strbuf_printf(&version, "%" PRId64, e->number);
    else
        strbuf_putc(&version, '-');
    strbuf_puts(&status, table_state_name(e->state));
    if (*e->reason)
        strbuf_printf(&status, ": %s", e->reason);
    start_table_add(r, model, strbuf_str(&version), strbuf_take(&status));
    strbuf_fini(&version);
}

char *start_table_text(struct table_view *view)
{
    uint32_t count;
    const struct table_model *models = table_models(view, &count);
    struct rows r = {.columns = 3};
    start_table_add(&r, "Model", "Version", mem_strdup("Status"));
    for (uint32_t i = 0; i < count; i++) {
        if (!models[i].entry_count && models[i].wanted)
            start_table_add(&r, table_title(&models[i]), "-",
                            mem_strdup("Not loaded: No model version was found"));
        for (uint32_t k = 0; k < models[i].entry_count; k++)
            add_entry(&r, table_title(&models[i]), &models[i].entries[k]);
    }
    return table_of(&r);
}

static void add_agent(void *rows, const char *name, const char *path)
{
    start_table_add(rows, name, NULL, mem_strdup(path));
}

char *start_table_agents(struct repo *repo)
{
    struct rows r = {.columns = 2};
    start_table_add(&r, "Repository Agent", NULL, mem_strdup("Path"));
    repo_each_agent(repo, add_agent, &r);
    return table_of(&r);
}

static void add_backend(void *rows, const struct plugin_backend *b)
{
    start_table_add(rows, b->name, b->path, mem_strndup(b->config->json, b->config->len));
}

char *start_table_backends(struct backend_registry *backends)
{
    struct rows r = {.columns = 3};
    start_table_add(&r, "Backend", "Path", mem_strdup("Config"));
    backend_registry_each(backends, add_backend, &r);
    return table_of(&r);
}

__attribute__((format(printf, 3, 4))) static void add_option(struct rows *r, const char *name,
                                                             const char *fmt, ...)
{
    struct strbuf value = STRBUF_INIT;
    char text[OPTION_BYTES];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    strbuf_puts(&value, text);
    start_table_add(r, name, NULL, strbuf_take(&value));
}

static void add_list(struct rows *r, const char *before, const char *behind,
                     const char *const *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct strbuf name = STRBUF_INIT;
        strbuf_printf(&name, "%s%zu%s", before, i, behind);
        add_option(r, strbuf_str(&name), "%s", values[i]);
        strbuf_fini(&name);
    }
}

static int by_device_and_name(const void *a, const void *b)
{
    const struct options_resource *x = a;
    const struct options_resource *y = b;
    int by_device = (x->device > y->device) - (x->device < y->device);
    return by_device ? by_device : strcmp(x->name, y->name);
}

static void add_resources(struct rows *r, const struct options_limits *l)
{
    struct options_resource sorted[OPTIONS_MAX_RATE_RESOURCES];
    memcpy(sorted, l->resources, l->resource_count * sizeof(*sorted));
    qsort(sorted, l->resource_count, sizeof(*sorted), by_device_and_name);
    for (size_t i = 0; i < l->resource_count; i++) {
        char name[48];
        snprintf(name, sizeof(name), "rate_limit_resource[%zu]", i);
        add_option(r, name, "{\"name\":\"%s\", \"count\":%" PRIu64 " \"device\":%" PRId32 "}",
                   sorted[i].name, sorted[i].count, sorted[i].device);
    }
}

char *start_table_options(const struct server *s)
{
    static const char *const modes[] = {[OPTIONS_CONTROL_NONE] = "MODE_NONE",
                                        [OPTIONS_CONTROL_POLL] = "MODE_POLL",
                                        [OPTIONS_CONTROL_EXPLICIT] = "MODE_EXPLICIT"};
    const struct options *o = s->options;
    Inference__ServerMetadataResponse *told = server_metadata_new(s);
    struct strbuf extensions = STRBUF_INIT;
    for (size_t i = 0; i < told->n_extensions; i++)
        strbuf_printf(&extensions, "%s%s", i ? " " : "", told->extensions[i]);
    struct rows r = {.columns = 2};
    start_table_add(&r, "Option", NULL, mem_strdup("Value"));
    add_option(&r, "server_id", "%s", told->name);
    add_option(&r, "server_version", "%s", told->version);
    add_option(&r, "server_extensions", "%s", strbuf_str(&extensions));
    add_list(&r, "model_repository_path[", "]", o->repositories, o->repository_count);
    add_option(&r, "model_control_mode", "%s", modes[o->control_mode]);
    add_list(&r, "startup_models_", "", o->load_models, o->load_model_count);
    add_option(&r, "strict_model_config", "%d", !o->auto_complete_config);
    add_option(&r, "model_config_name", "%s", o->model_config_name ? o->model_config_name : "");
    add_option(&r, "rate_limit", "%s", o->limits.rates ? "EXEC_COUNT" : "OFF");
    add_resources(&r, &o->limits);
    add_option(&r, "pinned_memory_pool_byte_size", "%" PRIu64, o->gpus.pinned_bytes);
    add_option(&r, "min_supported_compute_capability", "%.1f", o->gpus.least_capability);
    add_option(&r, "strict_readiness", "%d", o->strict_readiness);
    add_option(&r, "exit_timeout", "%u", o->exit_timeout_secs);
    add_option(&r, "cache_enabled", "%d", o->cache_setting_count != 0);
    strbuf_fini(&extensions);
    protobuf_c_message_free_unpacked(&told->base, NULL);
    return table_of(&r);
}

char *start_table_loading(struct table_view *view)
{
    uint32_t count;
    const struct table_model *models = table_models(view, &count);
    struct strbuf sb = STRBUF_INIT;
    unsigned found = 0;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < models[i].entry_count; k++) {
            const struct table_entry *e = &models[i].entries[k];
            if (e->state != TABLE_LOADING)
                continue;
            if (found++ < MOST_LOADING)
                strbuf_printf(&sb, "%s%s:%" PRId64, sb.len ? ", " : "", table_title(&models[i]),
                              e->number);
        }
    if (found > MOST_LOADING)
        strbuf_printf(&sb, " and %u more", found - MOST_LOADING);
    return found ? strbuf_take(&sb) : NULL;
}
