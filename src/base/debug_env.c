#include "base/debug_env.h"

#include "base/log.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

uint64_t debug_env_number(const char *name)
{
    const char *text = getenv(name);
    char *end;
    if (!text)
        return 0;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (!isdigit((unsigned char)*text) || *end || errno) {
        LOG_ERROR("variable %s: expected a whole number, got '%s': it is ignored", name, text);
        return 0;
    }
    if (value)
        LOG_INFO("variable %s=%llu slows this server down, for tests", name, value);
    return value;
}
