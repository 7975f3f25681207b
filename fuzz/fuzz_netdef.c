/* Caffe2's NetDefs: a file is translated to ONNX, or refused with a reason. The result must be a
 * protocol buffer. The input is a network that computes the blob y from x, an image. */
#include "base/check.h"
#include "caffe2/translate.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_error(TRITONSERVER_Error *err)
{
    CHECK(*TRITONSERVER_ErrorMessage(err));
    TRITONSERVER_ErrorDelete(err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int64_t dims[] = {-1, 4, -1, -1};
    static const struct translate_tensor x = {"x", TRITONSERVER_TYPE_FP32, 4, dims};
    static const struct translate_tensor y = {"y", TRITONSERVER_TYPE_FP32, 2, dims};
    struct scratch memory = {0};
    struct wire_out model = {0};
    struct netdef net;
    struct wire_field field;
    TRITONSERVER_Error *err =
        netdef_read(&memory, (struct wire){.at = data, .end = data + size}, "file", &net);
    struct translate_network network = {
        .net = &net, .inputs = &x, .input_count = 1, .outputs = &y, .output_count = 1};
    if (!err)
        err = translate_network(&memory, &network, &model);
    if (err) {
        check_error(err);
        CHECK(!model.bytes);
    }
    struct wire all = {.at = model.bytes, .end = model.bytes + model.size};
    while (wire_next(&all, &field))
        CHECK(field.number == 1 || field.number == 2 || field.number == 7 || field.number == 8);
    CHECK(!all.broken);
    wire_free(&model);
    scratch_fini(&memory);
    return 0;
}
