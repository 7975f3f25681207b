#include "http/openai/openai_models.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "codec/json_out.h"
#include "http/http_exchange.h"
#include "http/http_shard.h"
#include "model/config.h"
#include "serve/table.h"
#include "serve/version.h"
#include "server/worker.h"

#include <inttypes.h>

/* Whether the version that a request would reach says how to serve it. */
static bool openai_is_told(const struct table_model *m)
{
    return m->latest < m->entry_count && m->entries[m->latest].version->config->openai;
}

static void put_told_model(struct strbuf *out, const struct table_model *m, time_ns since)
{
    strbuf_puts(out, "{\"id\":");
    json_out_put(out, table_title(m));
    strbuf_printf(out, ",\"object\":\"model\",\"created\":%" PRIu64 ",\"owned_by\":\"nereid\"}",
                  (uint64_t)(since / TIME_S(1)));
}

static void openai_models_answer(struct http_exchange *x, struct strbuf *text)
{
    size_t len = text->len;
    http_exchange_text(x, 200, HTTP_JSON, strbuf_take(text), len);
}

void openai_models_list(struct http_exchange *x, time_ns since)
{
    struct strbuf out = STRBUF_INIT;
    uint32_t count;
    const struct table_model *models = table_models(&x->shard->worker->view, &count);
    const char *comma = "";
    strbuf_puts(&out, "{\"object\":\"list\",\"data\":[");
    for (uint32_t i = 0; i < count; i++) {
        if (!openai_is_told(&models[i]))
            continue;
        strbuf_puts(&out, comma);
        put_told_model(&out, &models[i], since);
        comma = ",";
    }
    strbuf_puts(&out, "]}");
    openai_models_answer(x, &out);
}

void openai_models_tell(struct http_exchange *x, const char *name, size_t len, time_ns since)
{
    const struct table_model *m = table_model(&x->shard->worker->view, name, len);
    if (!m || !openai_is_told(m)) {
        x->param = "model";
        http_exchange_error(x, err_new(STATUS_NOT_FOUND,
                                       "The model '%.*s' does not exist, or is not served here",
                                       (int)(len < 256 ? len : 256), name));
        return;
    }
    struct strbuf out = STRBUF_INIT;
    put_told_model(&out, m, since);
    openai_models_answer(x, &out);
}
