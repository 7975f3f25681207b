#include "blog.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "berr.h"

static void blog_line(TRITONSERVER_LogLevel level, const char *fmt, va_list args)
{
    char *line;
    if (vasprintf(&line, fmt, args) < 0)
        return;
    berr_drop(TRITONSERVER_LogMessage(level, __FILE__, __LINE__, line));
    free(line);
}

void blog_info(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    blog_line(TRITONSERVER_LOG_INFO, fmt, args);
    va_end(args);
}

void blog_warn(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    blog_line(TRITONSERVER_LOG_WARN, fmt, args);
    va_end(args);
}
