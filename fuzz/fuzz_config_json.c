/* A configuration in JSON. One that can be read is printed in the form of the C ABI, which must
 * read as the same configuration. */
#include "base/check.h"
#include "base/mem.h"
#include "model/config.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct Inference__ModelConfig *proto = NULL, *again = NULL;
    struct err *e = config_parse_json((const char *)data, size, &proto);
    CHECK((e == NULL) == (proto != NULL));
    if (e) {
        CHECK(*err_message(e));
        err_free(e);
        return 0;
    }
    size_t len, second_len;
    char *text = config_print_json(proto, &len);
    e = config_parse_json(text, len, &again);
    CHECK(!e);
    char *second = config_print_json(again, &second_len);
    CHECK(len == second_len && memcmp(text, second, len) == 0);
    mem_free(text);
    mem_free(second);
    config_free_proto(proto);
    config_free_proto(again);
    return 0;
}
