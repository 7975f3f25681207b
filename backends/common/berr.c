#include "berr.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

TRITONSERVER_Error *berr_about(TRITONSERVER_Error *err, const char *fmt, ...)
{
    char *about;
    va_list args;
    if (!err)
        return NULL;
    va_start(args, fmt);
    bool able = vasprintf(&about, fmt, args) >= 0;
    va_end(args);
    if (!able)
        return err;
    TRITONSERVER_Error *whole =
        berr_new(TRITONSERVER_ErrorCode(err), "%s: %s", about, TRITONSERVER_ErrorMessage(err));
    free(about);
    berr_drop(err);
    return whole;
}

static void berr_names_put(struct berr_names *names, const char *text)
{
    size_t length = strlen(text), room = sizeof names->text - 1 - names->used;
    if (names->cut)
        return;
    if (length > room) {
        names->cut = true;
        length = room;
        while (length > 0 && (text[length] & 0xc0) == 0x80) /* within a character */
            length--;
    }
    memcpy(names->text + names->used, text, length);
    names->used += length;
    names->text[names->used] = '\0';
}

void berr_names_add(struct berr_names *names, const char *name)
{
    if (names->used)
        berr_names_put(names, ", ");
    berr_names_put(names, name);
}

void berr_drop(TRITONSERVER_Error *err)
{
    if (err)
        TRITONSERVER_ErrorDelete(err);
}

void berr_log(TRITONSERVER_Error *err, const char *what)
{
    if (!err) /* of each call of an execution, mostly */
        return;
    err = berr_about(err, "%s", what);
    berr_drop(TRITONSERVER_LogMessage(TRITONSERVER_LOG_ERROR, __FILE__, __LINE__,
                                      TRITONSERVER_ErrorMessage(err)));
    berr_drop(err);
}
