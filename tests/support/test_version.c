#include "support/test_version.h"

#include "base/check.h"
#include "model/config.h"
#include "model/config_fill.h"
#include "model/config_groups.h"
#include "plugin/model.h"
#include "serve/runner.h"
#include "server/rooms.h"

#include <stdio.h>
#include <string.h>

struct plugin_backend
test_version_backend(TRITONSERVER_Error *(*execute)(TRITONBACKEND_ModelInstance *,
                                                    TRITONBACKEND_Request **, uint32_t))
{
    struct plugin_backend b = {0};
    b.name = (char *)(uintptr_t) "test";
    b.entries.execute = execute;
    return b;
}

static void must(struct err *e)
{
    if (e)
        fprintf(stderr, "%s\n", err_message(e));
    CHECK(!e);
}

struct model_config *test_version_config(const char *text)
{
    struct Inference__ModelConfig *proto;
    struct model_config *config;
    must(config_parse_text(text, strlen(text), "config.pbtxt", &proto));
    config_fill_defaults(proto, "m");
    config_groups_fill(proto, NULL);
    must(config_compile(&proto, &config));
    return config;
}

struct features *test_version_features(void)
{
    static struct features *all;
    if (!all)
        must(features_open(&rooms_list, NULL, &all));
    return all;
}

struct serve_version *test_version_made(struct plugin_backend *backend, const char *text,
                                        struct loop *house)
{
    struct model_config *config = test_version_config(text);
    struct plugin_model *model = model_new(backend, "m", 1, "/", NULL, false, NULL);
    must(model_initialize(model));
    model_publish_config(model, config);
    struct serve_version *v;
    must(version_new("m", 1, config, model, true, house, test_version_features(), &v));
    return v;
}

struct serve_version *test_version_new(struct plugin_backend *backend, const char *text,
                                       struct loop *house)
{
    struct serve_version *v = test_version_made(backend, text, house);
    must(version_start(v));
    return v;
}

void test_version_was_quick(struct serve_version *v)
{
    mutex_lock(&v->lock);
    for (uint32_t i = 0; i < v->instances.runner_count; i++)
        v->instances.runners[i]->slow_ns = 0;
    mutex_unlock(&v->lock);
}
