#include "http/live/live_errors.h"

#include "base/mem.h"
#include "base/strbuf.h"
#include "codec/json_out.h"
#include "metrics/recent.h"

#include <inttypes.h>

char *live_errors_new(struct recent *r, size_t *ret_len)
{
    static const char *const kinds[] = {[RECENT_REQUEST] = "request", [RECENT_LOAD] = "load"};
    struct recent_failure *all;
    size_t count = recent_read(r, &all);
    struct strbuf text = STRBUF_INIT;
    strbuf_puts(&text, "{\"errors\":[");
    for (size_t i = 0; i < count; i++) {
        const struct recent_failure *f = &all[i];
        strbuf_printf(&text, "%s[%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",\"%s\",", i ? "," : "",
                      f->last_ms, f->first_ms, f->count, kinds[f->kind]);
        json_out_put(&text, f->model);
        strbuf_putc(&text, ',');
        json_out_put(&text, f->text);
        strbuf_putc(&text, ']');
    }
    strbuf_puts(&text, "]}");
    mem_free(all);
    *ret_len = text.len;
    return strbuf_take(&text);
}
