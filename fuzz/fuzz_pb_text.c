/* Protobuf text format with the descriptor of the configuration: what can be parsed is packed,
 * unpacked and printed. */
#include "base/check.h"
#include "codec/pb_field.h"
#include "codec/pb_json.h"
#include "codec/pb_text.h"
#include "proto/model_config.pb-c.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ProtobufCMessage *m = NULL;
    struct err *e = pb_text_read(&inference__model_config__descriptor, (const char *)data, size,
                                 "config.pbtxt", 1 << 20, &m);
    CHECK((e == NULL) == (m != NULL));
    if (e) {
        CHECK(*err_message(e));
        err_free(e);
        return 0;
    }
    size_t len = protobuf_c_message_get_packed_size(m);
    uint8_t *wire = malloc(len + 1);
    CHECK(protobuf_c_message_pack(m, wire) == len);
    ProtobufCMessage *again = protobuf_c_message_unpack(m->descriptor, NULL, len, wire);
    CHECK(again);
    protobuf_c_message_free_unpacked(again, NULL);
    free(wire);
    struct strbuf json = STRBUF_INIT;
    pb_json_print(m, (struct pb_json_style){.defaults = size & 1, .plain_int64 = size & 2}, &json);
    CHECK(json.len >= 2);
    strbuf_fini(&json);
    pb_field_free_message(m);
    return 0;
}
