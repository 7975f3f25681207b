#include "berr.h"

#include <stdio.h>
#include <stdlib.h>

/* Longest error text that is formatted without an allocation. */
enum { SHORT_TEXT = 512 };

TRITONSERVER_Error *berr_newv(TRITONSERVER_Error_Code code, const char *fmt, va_list args)
{
    char text[SHORT_TEXT];
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(text, sizeof text, fmt, args);
    char *full = length < (int)sizeof text ? NULL : malloc((size_t)length + 1);
    if (full)
        vsnprintf(full, (size_t)length + 1, fmt, again);
    va_end(again);
    TRITONSERVER_Error *err = TRITONSERVER_ErrorNew(code, full ? full : length < 0 ? fmt : text);
    free(full);
    return err;
}

TRITONSERVER_Error *berr_new(TRITONSERVER_Error_Code code, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    TRITONSERVER_Error *err = berr_newv(code, fmt, args);
    va_end(args);
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
