/* Label files: every byte of the text belongs to a label or ends one. */
#include "base/check.h"
#include "model/labels.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct labels *l = NULL;
    struct err *e = labels_parse((const char *)data, size, "labels.txt", &l);
    CHECK((e == NULL) == (l != NULL));
    if (e) {
        CHECK(*err_message(e));
        err_free(e);
        return 0;
    }
    size_t bytes = 0, ends = 0;
    uint32_t count = labels_count(l);
    for (uint32_t i = 0; i < count; i++) {
        const char *label = labels_get(l, i);
        CHECK(label && !strchr(label, '\n'));
        bytes += strlen(label);
    }
    CHECK(!labels_get(l, count));
    for (size_t i = 0; i < size; i++)
        ends += data[i] == '\n' || (data[i] == '\r' && i + 1 < size && data[i + 1] == '\n');
    CHECK(bytes + ends <= size && bytes + ends + 1 >= size);
    labels_free(l);
    return 0;
}
