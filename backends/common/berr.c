#include "berr.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* Longest error text that is formatted without an allocation. */
enum { SHORT_TEXT = 512 };

TRITONSERVER_Error *berr_new(TRITONSERVER_Error_Code code, const char *fmt, ...)
{
    char text[SHORT_TEXT];
    va_list args;
    va_start(args, fmt);
    int length = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (length < (int)sizeof text)
        return TRITONSERVER_ErrorNew(code, length < 0 ? fmt : text);

    char *full = malloc((size_t)length + 1);
    if (!full)
        return TRITONSERVER_ErrorNew(code, text);
    va_start(args, fmt);
    vsnprintf(full, (size_t)length + 1, fmt, args);
    va_end(args);
    TRITONSERVER_Error *err = TRITONSERVER_ErrorNew(code, full);
    free(full);
    return err;
}

TRITONSERVER_Error *berr_no_memory(void)
{
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNAVAILABLE, "out of memory");
}

void berr_drop(TRITONSERVER_Error *err)
{
    if (err)
        TRITONSERVER_ErrorDelete(err);
}

void berr_log(TRITONSERVER_Error *err, const char *what)
{
    if (!err)
        return;
    char line[SHORT_TEXT];
    snprintf(line, sizeof line, "%s: %s", what, TRITONSERVER_ErrorMessage(err));
    berr_drop(TRITONSERVER_LogMessage(TRITONSERVER_LOG_ERROR, __FILE__, __LINE__, line));
    TRITONSERVER_ErrorDelete(err);
}
