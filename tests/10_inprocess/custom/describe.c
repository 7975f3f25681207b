/* A custom backend of interface version 2, without a context: OUT is a vector of strings, what
 * CustomInitialize was told; IN is looked at for where it lies. */
#include "triton/core/custom.h"

#include <stdio.h>
#include <string.h>

static char told[5][300];

uint32_t CustomVersion(void)
{
    return 2;
}

int CustomInitialize(const CustomInitializeData *data, void **custom_context)
{
    *custom_context = NULL;
    snprintf(told[0], sizeof(told[0]), "instance=%s", data->instance_name);
    snprintf(told[1], sizeof(told[1]), "device=%d", data->gpu_device_id);
    snprintf(told[2], sizeof(told[2]), "version=%s",
             data->server_parameters[INFERENCE_SERVER_VERSION]);
    snprintf(told[3], sizeof(told[3]), "repository=%s",
             data->server_parameters[MODEL_REPOSITORY_PATH]);
    /* The name is field 1, and comes first. */
    const uint8_t *config = (const uint8_t *)data->serialized_model_config;
    if (data->serialized_model_config_size > 2 && config[0] == (1 << 3 | 2))
        snprintf(told[4], sizeof(told[4]), "config=%.*s", config[1], (const char *)config + 2);
    return data->server_parameter_cnt == CUSTOM_SERVER_PARAMETER_CNT ? 0 : 1;
}

int CustomFinalize(void *custom_context)
{
    return custom_context != NULL;
}

const char *CustomErrorString(void *custom_context, int errcode)
{
    (void)custom_context;
    (void)errcode;
    return NULL;
}

static int run(const CustomPayload *p, CustomGetNextInputV2Fn_t input_fn,
               CustomGetOutputV2Fn_t output_fn)
{
    const void *content;
    uint64_t size = 4;
    CustomMemoryType memory = CUSTOM_MEMORY_GPU; /* a wish; here there is none */
    int64_t device = 3;
    if (!input_fn(p->input_context, "IN", &content, &size, &memory, &device) || size != 4 ||
        memory != CUSTOM_MEMORY_CPU || device != 0)
        return 2;
    uint64_t bytes = 0;
    for (int i = 0; i < 5; i++)
        bytes += 4 + strlen(told[i]);
    int64_t shape[1] = {5};
    void *to;
    memory = CUSTOM_MEMORY_GPU;
    if (!output_fn(p->output_context, "OUT", 1, shape, bytes, &to, &memory, &device) ||
        memory != CUSTOM_MEMORY_CPU)
        return 3;
    char *at = to;
    for (int i = 0; i < 5; i++) {
        uint32_t length = (uint32_t)strlen(told[i]);
        memcpy(at, &length, 4);
        memcpy(at + 4, told[i], length);
        at += 4 + length;
    }
    return 0;
}

int CustomExecuteV2(void *custom_context, uint32_t payload_cnt, CustomPayload *payloads,
                    CustomGetNextInputV2Fn_t input_fn, CustomGetOutputV2Fn_t output_fn)
{
    (void)custom_context;
    for (uint32_t i = 0; i < payload_cnt; i++)
        payloads[i].error_code = run(&payloads[i], input_fn, output_fn);
    return 0;
}
