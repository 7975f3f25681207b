#include "server/options/options_row.h"

#include "base/strbuf.h"

#include <string.h>

#define WIDTH  100
#define INDENT "        "

/* Writes a text with line breaks between words. */
static void put_wrapped(struct strbuf *sb, const char *text)
{
    size_t column = 0;
    while (*text) {
        size_t len = strcspn(text, " ");
        if (column && column + 1 + len > WIDTH - strlen(INDENT)) {
            strbuf_putc(sb, '\n');
            column = 0;
        }
        strbuf_puts(sb, column ? " " : INDENT);
        strbuf_append(sb, text, len);
        column += len + (column != 0);
        text += len;
        text += strspn(text, " ");
    }
    strbuf_putc(sb, '\n');
}

static void options_help_put_row(struct strbuf *sb, const struct options_row *row)
{
    strbuf_printf(sb, "  --%s%s%s\n", row->name, *row->value ? " " : "", row->value);
    struct strbuf text = STRBUF_INIT;
    strbuf_puts(&text, row->help);
    if (row->kind == OPTIONS_KIND_TUNES)
        strbuf_puts(&text, " Accepted, without effect.");
    else if (*row->standard)
        strbuf_printf(&text, " Default: %s.", row->standard);
    put_wrapped(sb, strbuf_str(&text));
    strbuf_fini(&text);
}

char *options_help(void)
{
    struct strbuf sb = STRBUF_INIT;
    strbuf_puts(&sb,
                "Usage: nereid --model-repository <path> [options]\n"
                "       nereid check <path>...           read repositories, print problems\n"
                "       nereid doctor [options]          what this machine has for a server\n"
                "       nereid bench -m <model>          measure a server\n"
                "       nereid migrate <file>...         what becomes of a tritonserver here\n\n"
                "Serves models over HTTP and gRPC. Options are written --name=value or --name "
                "value.\n"
                "check reads a model repository, says what is wrong with it, and ends; "
                "nereid check --help\ntells more.\n\n"
                "  --help, -h\n" INDENT "Print this and end.\n"
                "  --version\n" INDENT "Print the version and end.\n");
    const char *group = "";
    size_t count;
    const struct options_row *rows = options_row_all(&count);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(group, rows[i].group) != 0)
            strbuf_printf(&sb, "\n%s:\n", rows[i].group);
        group = rows[i].group;
        options_help_put_row(&sb, &rows[i]);
    }
    return strbuf_take(&sb);
}
