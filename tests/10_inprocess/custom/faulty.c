/* A custom backend that fails: in CustomInitialize or CustomFinalize where the name of its
 * instance says so, else as the value of the INT32 input IN says. OUT is IN; UNWANTED is an
 * output that nobody asks for. */
#include "triton/core/custom.h"

#include <string.h>

static char context[100];

int CustomInitialize(const CustomInitializeData *data, void **custom_context)
{
    *custom_context = NULL;
    if (strstr(data->instance_name, "mute"))
        return 5;
    strncpy(context, data->instance_name, sizeof(context) - 1);
    *custom_context = context;
    return strstr(context, "initialize") ? 6 : 0;
}

int CustomFinalize(void *custom_context)
{
    return strstr(custom_context, "finalize") ? 7 : 0;
}

const char *CustomErrorString(void *custom_context, int errcode)
{
    (void)custom_context;
    switch (errcode) {
    case 6:
        return "told to fail in CustomInitialize";
    case 7:
        return "told to fail in CustomFinalize";
    case 11:
        return "told to fail this request";
    case 12:
        return "told to fail the batch";
    default:
        return NULL;
    }
}

/* Asks for an output in a way that must be refused. */
static int is_refused(const CustomPayload *p, CustomGetOutputFn_t output_fn, size_t rank,
                      int64_t *shape, uint64_t bytes)
{
    void *content = NULL;
    return !output_fn(p->output_context, "OUT", rank, shape, bytes, &content) && !content;
}

static int run(CustomPayload *p, CustomGetNextInputFn_t input_fn, CustomGetOutputFn_t output_fn)
{
    const void *content;
    uint64_t size = 4;
    if (!input_fn(p->input_context, "IN", &content, &size) || size != 4)
        return 1;
    int32_t value;
    memcpy(&value, content, 4);
    int64_t shape[1] = {1};
    int64_t negative[1] = {-1};
    int64_t huge[2] = {1LL << 40, 1LL << 40};
    void *to = NULL;
    switch (value) {
    case 11:
    case 13: /* has no words */
        return value;
    case 14:
        return input_fn(p->input_context, "NONE", &content, &size) ? 1 : 11;
    case 15: /* refused, and success all the same */
        return is_refused(p, output_fn, 1, shape, 400) ? 0 : 1;
    case 16:
        return is_refused(p, output_fn, 1, negative, 4) ? 0 : 1;
    case 17:
        return is_refused(p, output_fn, 2, huge, 4) ? 0 : 1;
    case 18: /* asked for twice */
        if (!output_fn(p->output_context, "OUT", 1, shape, 4, &to) || !to)
            return 1;
        return is_refused(p, output_fn, 1, shape, 4) ? 0 : 1;
    case 19: /* no output at all */
        return 0;
    default:
        break;
    }
    if (!output_fn(p->output_context, "UNWANTED", 1, shape, 4, &to) || to)
        return 1;
    if (!output_fn(p->output_context, "OUT", 1, shape, 4, &to) || !to)
        return 1;
    memcpy(to, &value, 4);
    return value == 12 ? -1 : 0;
}

int CustomExecute(void *custom_context, uint32_t payload_cnt, CustomPayload *payloads,
                  CustomGetNextInputFn_t input_fn, CustomGetOutputFn_t output_fn)
{
    (void)custom_context;
    for (uint32_t i = 0; i < payload_cnt; i++) {
        payloads[i].error_code = run(&payloads[i], input_fn, output_fn);
        if (payloads[i].error_code == -1)
            return 12;
    }
    return 0;
}
