/* The ports that SageMaker and Vertex AI call: a whole HTTP connection to one of them, or the list
 * of SageMaker's models. Of the first byte the lowest two bits choose: SageMaker, Vertex AI,
 * Vertex AI before its model is chosen, the list; what is left chooses how the rest is cut into
 * pieces. */
#include "base/check.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "http/clouds/sagemaker.h"
#include "http/clouds/sagemaker_models.h"
#include "http/clouds/vertex.h"
#include "server/options/options.h"
#include "server/server.h"
#include "server/worker.h"
#include "support/fuzz_http.h"
#include "support/fuzz_server.h"

#include <string.h>
#include <yyjson.h>

enum { SAGEMAKER, VERTEX, VERTEX_EARLY, LIST, KINDS };

static struct http_front *fronts[LIST];

static void prepare(void)
{
    struct options *o = (struct options *)(uintptr_t)fuzz_server_worker()->server->options;
    o->sagemaker.model = "m";
    o->sagemaker.inference = "infer";
    o->sagemaker.ping = "live";
    o->vertex.model = "s";
    o->vertex.predict = "/predict";
    o->vertex.health = "/health";
    fronts[SAGEMAKER] = fuzz_http_open(&sagemaker_service);
    fronts[VERTEX] = fuzz_http_open(&vertex_service);
    fronts[VERTEX_EARLY] = fuzz_http_open(&vertex_service);
    CHECK(!vertex_settle(fronts[VERTEX]));
}

static void check_list(struct sagemaker_models *all)
{
    struct strbuf text = STRBUF_INIT;
    sagemaker_models_list(all, &text);
    yyjson_doc *doc = yyjson_read(strbuf_str(&text), text.len, YYJSON_READ_ALLOW_INVALID_UNICODE);
    CHECK(doc && yyjson_is_arr(yyjson_obj_get(yyjson_doc_get_root(doc), "models")));
    yyjson_doc_free(doc);
    strbuf_fini(&text);
}

/* One step: what is done, to which of the names. Who leaves or is loaded is known to the caller,
 * as it is to requests under way. */
static void change(struct sagemaker_models *all, uint8_t what, const char *name)
{
    char target[SAGEMAKER_MODELS_NAME_BYTES];
    struct strbuf text = STRBUF_INIT;
    struct err *e = NULL;
    switch (what & 3) {
    case 0:
        e = sagemaker_models_add(all, name, what & 4 ? "target" : name, what & 8 ? "" : "/u");
        if (!e) {
            CHECK(!sagemaker_models_target(all, name, strlen(name), false, target));
            sagemaker_models_loaded(all, name, !(what & 16));
        }
        break;
    case 1:
        if (sagemaker_models_target(all, name, strlen(name), true, target)) {
            CHECK(!sagemaker_models_target(all, name, strlen(name), true, target));
            sagemaker_models_left(all, name, !(what & 4));
        }
        break;
    case 2:
        CHECK(sagemaker_models_tell(all, name, strlen(name), &text) ==
              sagemaker_models_target(all, name, strlen(name), false, target));
        break;
    default:
        check_list(all);
        break;
    }
    err_free(e);
    strbuf_fini(&text);
}

/* A step is a byte, and a name that a zero ends. */
static void change_list(const uint8_t *data, size_t size)
{
    struct sagemaker_models *all = sagemaker_models_new();
    while (size > 1) {
        const uint8_t *end = memchr(data + 1, 0, size - 1);
        if (!end)
            break;
        change(all, data[0], (const char *)data + 1);
        size -= (size_t)(end + 1 - data);
        data = end + 1;
    }
    check_list(all);
    sagemaker_models_free(all);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    if (!fronts[0])
        prepare();
    unsigned kind = data[0] % KINDS;
    if (kind == LIST) {
        change_list(data + 1, size - 1);
        return 0;
    }
    fuzz_server_fresh();
    int fd;
    struct fuzz_client c = {.fd = fuzz_server_open(&fd)};
    fuzz_http_serve_at(fronts[kind], fd);
    fuzz_server_send(&c, data + 1, size - 1, data[0] / KINDS);
    fuzz_server_hang_up(&c);
    fuzz_http_settle();
    fuzz_http_check(&c);
    return 0;
}
