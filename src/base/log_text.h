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
    const char *file; /* without its directory */
    int line;
    const char *component; /* the folder, component_len bytes; may be empty */
    size_t component_len;
    const char *message;
    const char *request_id; /* NULL = not about a request; "" = about a request without an id */
    uint32_t held;          /* how many lines of this site were held back before this one */
};

/* log_text_put - write the entry, with its line break. */
void log_text_put(struct strbuf *sb, const struct log_entry *entry);

/* log_text_escape - write s as the inside of a JSON string. Escapes what the reference escapes,
 * and also DEL and C1. Other bytes that are not UTF-8 stay.
 * strict  bytes that are not UTF-8 become U+FFFD, so that the result is valid JSON */
void log_text_escape(struct strbuf *sb, const char *s, bool strict);

/* log_text_escape_some - the same for as many whole characters as fit in `most` bytes, and "..."
 * if that is not all. */
void log_text_escape_some(struct strbuf *sb, const char *s, bool strict, size_t most);

/* log_text_shown - a copy of s in which each byte that is no UTF-8 is written as \xff: for what
 * people read and for JSON and protocol buffers. The caller frees it (mem_free). */
char *log_text_shown(const char *s);

/* log_text_tame - replace each control character (C0, DEL, C1) of s by blanks, in place. */
void log_text_tame(char *s);

/* log_text_put_tame - append s, tamed. */
void log_text_put_tame(struct strbuf *sb, const char *s);

/* log_text_time - "2026-11-21T10:26:55.123456Z". */
void log_text_time(struct strbuf *sb, const struct timespec *time);
