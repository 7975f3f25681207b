/* A config.pbtxt through all steps: parse, guess, complete, check, instance groups, compile. The
 * first byte says which GPUs the machine has. */
#include "base/check.h"
#include "model/config.h"
#include "model/config_check.h"
#include "model/config_fill.h"
#include "model/config_groups.h"

#include <string.h>

static struct err *complete(struct Inference__ModelConfig *proto, unsigned gpus)
{
    static const int32_t ids[] = {0, 1, 2, 3};
    const struct config_groups_machine machine = {
        .gpus = ids, .gpu_count = gpus % 5, .min_compute_capability = 6.0};
    config_fill_defaults(proto, "m");
    struct err *e = config_check_model(proto, "m", CONFIG_CHECK_PARTIAL);
    if (e)
        return e;
    config_fill_defaults(proto, "m");
    e = config_check_model(proto, "m", CONFIG_CHECK_FULL);
    if (e)
        return e;
    config_groups_fill(proto, &machine);
    return config_groups_check(proto, &machine);
}

/* Every name that was compiled can be found. */
static void look_up(const struct model_config *c)
{
    for (uint32_t i = 0; i < c->input_count; i++)
        CHECK(config_input(c, c->inputs[i].name, c->inputs[i].name_len) == (int32_t)i);
    for (uint32_t i = 0; i < c->output_count; i++)
        CHECK(config_output(c, c->outputs[i].name, c->outputs[i].name_len) == (int32_t)i);
    CHECK(config_input(c, "no such input", strlen("no such input")) == -1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct Inference__ModelConfig *proto = NULL;
    if (!size)
        return 0;
    struct err *e = config_parse_text((const char *)data + 1, size - 1, "config.pbtxt", &proto);
    if (!e)
        e = complete(proto, data[0]);
    struct model_config *c = NULL;
    if (!e)
        e = config_compile(&proto, &c);
    if (!e)
        look_up(c);
    else
        CHECK(*err_message(e));
    config_unref(c);
    config_free_proto(proto);
    err_free(e);
    return 0;
}
