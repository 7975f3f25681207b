#pragma once
/* The text of a log entry in each format. Pure. */
#include "base/log.h"
#include "base/strbuf.h"

#include <time.h>

struct log_entry {
    enum log_level level;
    enum log_format format;
    bool escape;
    bool table; /* the message has several lines */
    struct timespec time;
    const char *file; /* without its folder */
    int line;
    const char *component; /* the folder, component_len bytes; may be none */
    size_t component_len;
    const char *message;
    const char *request_id; /* NULL = about no request; "" = about one that has no id */
    uint32_t held;          /* like lines that were held back before this one */
};

/* log_text_put - the entry, its line break included. */
void log_text_put(struct strbuf *sb, const struct log_entry *entry);

/* log_text_escape - s as the inside of a JSON string, as the reference escapes, and DEL and C1
 * as well; other bytes that are not UTF-8 stay.
 * strict  they become U+FFFD, so that it is JSON */
void log_text_escape(struct strbuf *sb, const char *s, bool strict);

/* log_text_escape_some - the same, as many whole characters as give no more than `most` bytes,
 * and "..." when that is not all. */
void log_text_escape_some(struct strbuf *sb, const char *s, bool strict, size_t most);

/* log_text_tame - each control character (C0, DEL, C1) of s becomes blanks, where it is. */
void log_text_tame(char *s);

/* log_text_time - "2026-11-21T10:26:55.123456Z". */
void log_text_time(struct strbuf *sb, const struct timespec *time);
