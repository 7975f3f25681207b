#include "base/err_tell.h"

#include "base/log_text.h"
#include "base/mem.h"

#include <stdio.h>

bool err_tell(const char *who, struct err *e)
{
    if (!e)
        return false;
    char *text = mem_strdup(err_message(e));
    log_text_tame(text);
    fprintf(stderr, "%s: %s\n", who, text);
    mem_free(text);
    err_free(e);
    return true;
}
