/* The command line: arguments are the input's lines. */
#include "base/check.h"
#include "base/mem.h"
#include "server/options.h"

#include <string.h>

#define MAX_ARGUMENTS 32

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct options o;
    char *text = mem_strndup((const char *)data, strnlen((const char *)data, size));
    char *argv[MAX_ARGUMENTS + 1] = {(char *)(uintptr_t) "nereid"};
    int argc = 1;
    char *rest = text;
    while (rest && argc < MAX_ARGUMENTS)
        argv[argc++] = strsep(&rest, "\n");
    enum options_action action = OPTIONS_RUN;
    options_defaults(&o);
    struct err *e = options_parse(argc, argv, &o, &action);
    if (e)
        CHECK(err_code(e) == STATUS_INVALID_ARG && *err_message(e));
    err_free(e);
    mem_free(text);
    return 0;
}
