#include "isolate/isolate_log.h"

#include "base/log.h"

#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

static enum log_level isolate_log_level(const char *name)
{
    if (strcmp(name, "error") == 0)
        return LOG_LEVEL_ERROR;
    if (strcmp(name, "warning") == 0)
        return LOG_LEVEL_WARN;
    return strcmp(name, "verbose") == 0 ? LOG_LEVEL_VERBOSE : LOG_LEVEL_INFO;
}

static const char *isolate_log_text(yyjson_val *root, const char *key)
{
    const char *text = yyjson_get_str(yyjson_obj_get(root, key));
    return text ? text : "";
}

/* Splits "file.cc:12": copies the file to `to` and returns the line. */
static int split_source(const char *source, char *to, size_t cap)
{
    const char *colon = strrchr(source, ':');
    size_t len = colon ? (size_t)(colon - source) : strlen(source);
    len = len < cap - 1 ? len : cap - 1;
    memcpy(to, source, len);
    to[len] = '\0';
    return colon ? (int)strtol(colon + 1, NULL, 10) : 0;
}

void isolate_log_relay(struct log_site *site, const char *model, const char *line, size_t len)
{
    yyjson_doc *doc = yyjson_read(line, len, 0);
    yyjson_val *root = yyjson_doc_get_root(doc);
    if (!yyjson_is_obj(root)) {
        while (len && line[len - 1] == '\n')
            len--;
        log_line(site, LOG_LEVEL_INFO, __FILE__, __LINE__, "%s: %.*s", model, (int)len, line);
        yyjson_doc_free(doc);
        return;
    }
    enum log_level level = isolate_log_level(isolate_log_text(root, "level"));
    /* The level may have been switched off since the process began. */
    if (level != LOG_LEVEL_VERBOSE && !log_enabled(level)) {
        yyjson_doc_free(doc);
        return;
    }
    char file[128];
    int number = split_source(isolate_log_text(root, "source"), file, sizeof(file));
    const char *message = isolate_log_text(root, "message");
    const char *id = strstr(message, "[request id: ") ? "" : isolate_log_text(root, "request_id");
    log_line(site, level, file, number, "%s%s%s%s: %s", *id ? "[request id: " : "", id,
             *id ? "] " : "", model, message);
    yyjson_doc_free(doc);
}
