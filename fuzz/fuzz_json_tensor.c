/* The "data" of a tensor in JSON. What can be read must be the same after it is written and read
 * again. The first byte chooses the type. */
#include "base/check.h"
#include "base/mem.h"
#include "codec/json_tensor.h"

#include <string.h>

static const struct json_tensor_type types[] = {
    {JSON_TENSOR_BOOL, 1, false}, {JSON_TENSOR_UINT, 1, false}, {JSON_TENSOR_UINT, 2, false},
    {JSON_TENSOR_UINT, 4, false}, {JSON_TENSOR_UINT, 8, false}, {JSON_TENSOR_INT, 1, false},
    {JSON_TENSOR_INT, 2, false},  {JSON_TENSOR_INT, 4, false},  {JSON_TENSOR_INT, 8, false},
    {JSON_TENSOR_REAL, 4, false}, {JSON_TENSOR_REAL, 8, false}, {JSON_TENSOR_BYTES, 0, false},
    {JSON_TENSOR_FP16, 2, false}, {JSON_TENSOR_BF16, 2, false}, {JSON_TENSOR_BYTES, 0, true},
};

#define MAX_COUNT 64

static const yyjson_read_flag flags =
    YYJSON_READ_ALLOW_INF_AND_NAN | YYJSON_READ_ALLOW_INVALID_UNICODE;

static uint64_t bytes_of(yyjson_val *data, struct json_tensor_type type, uint64_t count)
{
    uint64_t bytes = count * type.width;
    if (type.kind == JSON_TENSOR_BYTES && json_tensor_bytes(data, &bytes) != JSON_TENSOR_OK)
        return UINT64_MAX;
    return bytes;
}

/* Number of strings in a tensor of `bytes` bytes. */
static uint64_t strings_in(const uint8_t *tensor, uint64_t bytes)
{
    uint64_t count = 0;
    for (uint64_t at = 0; at < bytes; count++) {
        uint32_t len;
        CHECK(bytes - at >= sizeof(len));
        memcpy(&len, tensor + at, sizeof(len));
        at += sizeof(len);
        CHECK(len <= bytes - at);
        at += len;
    }
    return count;
}

static bool is_real(enum json_tensor_kind kind)
{
    return kind == JSON_TENSOR_REAL || kind == JSON_TENSOR_FP16 || kind == JSON_TENSOR_BF16;
}

/* Not for strings that are written unchanged, be they UTF-8 or not. */
static void read_back(const char *text, size_t len, struct json_tensor_type type, uint64_t count,
                      const void *tensor, uint64_t bytes)
{
    yyjson_doc *doc = yyjson_read(text, len, flags);
    CHECK(doc);
    void *again = mem_alloc(bytes + 1);
    CHECK(json_tensor_read(yyjson_doc_get_root(doc), type, count, again) == JSON_TENSOR_OK);
    CHECK(memcmp(again, tensor, bytes) == 0 || is_real(type.kind)); /* NaN has many forms */
    mem_free(again);
    yyjson_doc_free(doc);
}

static void write_and_read(struct json_tensor_type type, uint64_t count, const void *tensor,
                           uint64_t bytes)
{
    size_t room;
    CHECK(json_tensor_room(type, count, bytes, &room));
    char *text = mem_alloc(room + 1);
    char *end = json_tensor_write(text, type, count, tensor, bytes);
    CHECK(end && end > text && (size_t)(end - text) <= room);
    CHECK(*text == '[' && end[-1] == ']');
    if (type.kind != JSON_TENSOR_BYTES || type.base64)
        read_back(text, (size_t)(end - text), type, count, tensor, bytes);
    mem_free(text);
}

static void try_count(yyjson_val *data, struct json_tensor_type type, uint64_t count)
{
    uint64_t bytes = bytes_of(data, type, count);
    if (bytes == UINT64_MAX)
        return;
    uint8_t *tensor = mem_alloc(bytes + 1);
    tensor[bytes] = 0xA5;
    enum json_tensor_result r = json_tensor_read(data, type, count, tensor);
    CHECK(tensor[bytes] == 0xA5);
    CHECK(json_tensor_text(r));
    if (r == JSON_TENSOR_OK)
        write_and_read(type, type.kind == JSON_TENSOR_BYTES ? strings_in(tensor, bytes) : count,
                       tensor, bytes);
    mem_free(tensor);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    struct json_tensor_type type = types[data[0] % (sizeof(types) / sizeof(*types))];
    yyjson_doc *doc = yyjson_read((const char *)data + 1, size - 1, flags);
    if (doc) {
        for (uint64_t count = 0; count <= MAX_COUNT; count = count ? count * 2 : 1)
            try_count(yyjson_doc_get_root(doc), type, count);
        try_count(yyjson_doc_get_root(doc), type, data[0]);
        yyjson_doc_free(doc);
    } else {
        /* Use the input as a tensor: only tensors of strings can be invalid. */
        size_t room;
        uint64_t count = type.width ? (size - 1) / type.width : data[1];
        CHECK(json_tensor_room(type, count, size - 1, &room));
        char *text = mem_alloc(room + 1);
        char *end = json_tensor_write(text, type, count, data + 1, size - 1);
        CHECK(!end || (size_t)(end - text) <= room);
        mem_free(text);
    }
    return 0;
}
