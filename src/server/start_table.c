#include "server/start_table.h"

#include "base/log_text.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "serve/table.h"

#include <inttypes.h>
#include <string.h>

#define COLUMNS      3
#define MOST_LOADING 20u /* names in one line */

struct row {
    char *cells[COLUMNS];
};

struct rows {
    struct row *all;
    size_t count;
    size_t widths[COLUMNS];
};

/* Takes the last cell over. A line break in a cell would break the table. */
static void add(struct rows *r, const char *model, const char *version, char *status)
{
    struct row *row = &r->all[r->count++];
    *row = (struct row){.cells = {mem_strdup(model), mem_strdup(version), status}};
    for (size_t i = 0; i < COLUMNS; i++) {
        log_text_tame(row->cells[i]);
        size_t width = strlen(row->cells[i]);
        r->widths[i] = width > r->widths[i] ? width : r->widths[i];
    }
}

static void put_divider(struct strbuf *sb, const struct rows *r)
{
    for (size_t i = 0; i < COLUMNS; i++) {
        strbuf_putc(sb, '+');
        for (size_t k = 0; k < r->widths[i] + 2; k++)
            strbuf_putc(sb, '-');
    }
    strbuf_puts(sb, "+\n");
}

static void put_row(struct strbuf *sb, const struct rows *r, const struct row *row)
{
    for (size_t i = 0; i < COLUMNS; i++)
        strbuf_printf(sb, "| %-*s ", (int)r->widths[i], row->cells[i]);
    strbuf_puts(sb, "|\n");
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
    add(r, model, strbuf_str(&version), strbuf_take(&status));
    strbuf_fini(&version);
}

char *start_table_text(struct table_view *view)
{
    uint32_t count;
    const struct table_model *models = table_models(view, &count);
    size_t most = 1;
    for (uint32_t i = 0; i < count; i++)
        most += models[i].entry_count ? models[i].entry_count : 1;
    struct rows r = {.all = mem_zalloc(most * sizeof(*r.all))};
    add(&r, "Model", "Version", mem_strdup("Status"));
    for (uint32_t i = 0; i < count; i++) {
        if (!models[i].entry_count && models[i].wanted)
            add(&r, table_title(&models[i]), "-",
                mem_strdup("Not loaded: No model version was found"));
        for (uint32_t k = 0; k < models[i].entry_count; k++)
            add_entry(&r, table_title(&models[i]), &models[i].entries[k]);
    }
    struct strbuf sb = STRBUF_INIT;
    put_divider(&sb, &r);
    put_row(&sb, &r, &r.all[0]);
    put_divider(&sb, &r);
    for (size_t i = 1; i < r.count; i++)
        put_row(&sb, &r, &r.all[i]);
    put_divider(&sb, &r);
    for (size_t i = 0; i < r.count; i++)
        for (size_t k = 0; k < COLUMNS; k++)
            mem_free(r.all[i].cells[k]);
    mem_free(r.all);
    return strbuf_take(&sb);
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
