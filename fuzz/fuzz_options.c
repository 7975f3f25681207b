/* The command line: each line of the input is an argument. If the first byte is zero, the rest
 * is a file of options instead. */
#include "base/check.h"
#include "base/mem.h"
#include "server/options/options.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAX_ARGUMENTS 32

/* The fuzzer must not read files of the machine. */
static bool names_file(const char *argument)
{
    return strncmp(argument, "--co", 4) == 0;
}

static void parse(int argc, char **argv)
{
    static struct options o;
    enum options_action action = OPTIONS_RUN;
    options_defaults(&o);
    struct err *e = options_parse(argc, argv, &o, &action);
    if (e)
        CHECK(*err_message(e));
    err_free(e);
    options_fini(&o);
}

static void parse_file(const uint8_t *data, size_t size)
{
    int fd = memfd_create("options", MFD_CLOEXEC);
    CHECK(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    char argument[64];
    snprintf(argument, sizeof(argument), "--config=/proc/self/fd/%d", fd);
    char *argv[] = {(char *)(uintptr_t) "nereid", argument, NULL};
    parse(2, argv);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size && !*data) {
        parse_file(data + 1, size - 1);
        return 0;
    }
    char *text = mem_strndup((const char *)data, strnlen((const char *)data, size));
    char *argv[MAX_ARGUMENTS + 1] = {(char *)(uintptr_t) "nereid"};
    int argc = 1;
    bool skip = false;
    char *rest = text;
    while (rest && argc < MAX_ARGUMENTS) {
        argv[argc] = strsep(&rest, "\n");
        skip = skip || names_file(argv[argc++]);
    }
    if (!skip)
        parse(argc, argv);
    mem_free(text);
    return 0;
}
