#include "plan.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int plan_result(const char *plan, const char *symbol, long n)
{
    size_t len = strlen(symbol);
    for (const char *at = plan; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        if (strncmp(at, symbol, len) != 0 || at[len] != ':')
            continue;
        char *end;
        long first = strtol(at + len + 1, &end, 10);
        bool later = *end == '+';
        if (n == first || (later && n > first))
            return (int)strtol(end + (later ? 2 : 1), NULL, 10);
    }
    return 0;
}

const char *plan_gate(const char *plan, const char *symbol, long n)
{
    size_t len = strlen(symbol);
    char *end = NULL;
    if (!plan || strncmp(plan, symbol, len) != 0 || plan[len] != ':' ||
        strtol(plan + len + 1, &end, 10) != n || *end != '=')
        return NULL;
    return end + 1;
}

void plan_wait(const char *gate)
{
    char ignored;
    int pipe = open(gate, O_RDONLY | O_CLOEXEC);
    while (pipe >= 0 && read(pipe, &ignored, 1) > 0)
        continue;
    close(pipe);
}
