/* A custom backend that computes a network of two layers: logits = relu(image w0 + b0) w1 + b1.
 * The weights, FP32 in this order, lie in digits_custom/weights of the model's repository. */
#include "triton/core/custom.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PIXELS  64
#define HIDDEN  32
#define CLASSES 10

enum { NO_WEIGHTS = 1, BAD_INPUT, BAD_OUTPUT };

struct network {
    float w0[PIXELS][HIDDEN];
    float b0[HIDDEN];
    float w1[HIDDEN][CLASSES];
    float b1[CLASSES];
};

int CustomInitialize(const CustomInitializeData *data, void **custom_context)
{
    char path[4096];
    struct network *n = calloc(1, sizeof(*n));
    *custom_context = n;
    snprintf(path, sizeof(path), "%s/digits_custom/weights",
             data->server_parameters[MODEL_REPOSITORY_PATH]);
    FILE *file = fopen(path, "rb");
    if (!n || !file)
        return NO_WEIGHTS;
    size_t got = fread(n, sizeof(*n), 1, file);
    fclose(file);
    return got == 1 ? 0 : NO_WEIGHTS;
}

int CustomFinalize(void *custom_context)
{
    free(custom_context);
    return 0;
}

const char *CustomErrorString(void *custom_context, int errcode)
{
    (void)custom_context;
    return errcode == NO_WEIGHTS   ? "unable to read the weights"
           : errcode == BAD_INPUT  ? "unable to get the image"
           : errcode == BAD_OUTPUT ? "unable to get the logits"
                                   : NULL;
}

static void compute(const struct network *n, const float *image, float *logits)
{
    float hidden[HIDDEN];
    for (int h = 0; h < HIDDEN; h++) {
        hidden[h] = n->b0[h];
        for (int p = 0; p < PIXELS; p++)
            hidden[h] += image[p] * n->w0[p][h];
        hidden[h] = hidden[h] > 0 ? hidden[h] : 0;
    }
    for (int c = 0; c < CLASSES; c++) {
        logits[c] = n->b1[c];
        for (int h = 0; h < HIDDEN; h++)
            logits[c] += hidden[h] * n->w1[h][c];
    }
}

/* Reads images of so many bytes, which may come in any pieces. */
static int read_images(const CustomPayload *p, CustomGetNextInputFn_t input_fn, float *images,
                       uint64_t bytes)
{
    for (uint64_t have = 0; have < bytes;) {
        const void *content = NULL;
        uint64_t size = bytes - have;
        if (!input_fn(p->input_context, "image", &content, &size) || !content)
            return BAD_INPUT;
        memcpy((char *)images + have, content, size);
        have += size;
    }
    return 0;
}

static int run(const struct network *n, const CustomPayload *p, CustomGetNextInputFn_t input_fn,
               CustomGetOutputFn_t output_fn)
{
    int64_t shape[2] = {p->batch_size, CLASSES};
    void *logits = NULL;
    float *images = calloc(p->batch_size, sizeof(float[PIXELS]));
    int error = images ? read_images(p, input_fn, images, p->batch_size * sizeof(float[PIXELS]))
                       : BAD_INPUT;
    if (!error && !output_fn(p->output_context, "logits", 2, shape,
                             p->batch_size * sizeof(float[CLASSES]), &logits))
        error = BAD_OUTPUT;
    for (uint32_t row = 0; !error && logits && row < p->batch_size; row++)
        compute(n, images + (size_t)row * PIXELS, (float *)logits + (size_t)row * CLASSES);
    free(images);
    return error;
}

int CustomExecute(void *custom_context, uint32_t payload_cnt, CustomPayload *payloads,
                  CustomGetNextInputFn_t input_fn, CustomGetOutputFn_t output_fn)
{
    for (uint32_t i = 0; i < payload_cnt; i++)
        payloads[i].error_code = run(custom_context, &payloads[i], input_fn, output_fn);
    return 0;
}
