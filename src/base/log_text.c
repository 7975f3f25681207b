#include "base/log_text.h"

#include <string.h>
#include <unistd.h>

#define MOST_FILE_BYTES   255 /* the longest name of a source file */
#define MOST_FOLDER_BYTES 64  /* the longest name of its folder */

static const char letters[] = {'I', 'W', 'E', 'I'};
static const char *const names[] = {"info", "warning", "error", "verbose"};

void log_text_time(struct strbuf *sb, const struct timespec *time)
{
    struct tm tm;
    gmtime_r(&time->tv_sec, &tm);
    strbuf_printf(sb, "%04d-%02d-%02dT%02d:%02d:%02d.%06ldZ", tm.tm_year + 1900, tm.tm_mon + 1,
                  tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, time->tv_nsec / 1000);
}

/* The length of the UTF-8 character at s; 0 if it is invalid. */
static size_t utf8_bytes(const unsigned char *s)
{
    size_t n = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    if (s[0] > 0xf4 || (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
        (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    return n;
}

/* The length of the control character at s, which a terminal might obey: C0, DEL, and C1 both as
 * UTF-8 and as a single byte; 0 = no control character. */
static size_t control_bytes(const unsigned char *s)
{
    if (s[0] < 0x20 || s[0] == 0x7f)
        return 1;
    if (s[0] == 0xc2 && s[1] >= 0x80 && s[1] < 0xa0)
        return 2;
    return s[0] >= 0x80 && s[0] < 0xa0 ? 1 : 0;
}

char *log_text_shown(const char *s)
{
    struct strbuf sb = STRBUF_INIT;
    for (const unsigned char *at = (const unsigned char *)s; *at;) {
        size_t n = utf8_bytes(at);
        if (n)
            strbuf_append(&sb, at, n);
        else
            strbuf_printf(&sb, "\\x%02x", *at);
        at += n ? n : 1;
    }
    return strbuf_take(&sb);
}

void log_text_tame(char *s)
{
    for (unsigned char *at = (unsigned char *)s; *at;) {
        size_t n = control_bytes(at);
        memset(at, ' ', n);
        at += n ? n : utf8_bytes(at) ? utf8_bytes(at) : 1;
    }
}

void log_text_put_tame(struct strbuf *sb, const char *s)
{
    size_t from = sb->len;
    strbuf_puts(sb, s);
    if (sb->len > from)
        log_text_tame(sb->data + from);
}

/* Writes the file's name, which may come from a plug-in. */
static void put_file(struct strbuf *sb, const char *file)
{
    size_t from = sb->len;
    strbuf_append(sb, file, strnlen(file, MOST_FILE_BYTES));
    log_text_tame(sb->data + from);
}

static void put_prefix(struct strbuf *sb, const struct log_entry *e)
{
    struct tm tm;
    gmtime_r(&e->time.tv_sec, &tm);
    if (e->format == LOG_FORMAT_ISO8601)
        strbuf_printf(sb, "%d-%02d-%02dT%02d:%02d:%02dZ %c %d ", tm.tm_year + 1900, tm.tm_mon + 1,
                      tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, letters[e->level],
                      (int)getpid());
    else
        strbuf_printf(sb, "%c%02d%02d %02d:%02d:%02d.%06ld %d ", letters[e->level], tm.tm_mon + 1,
                      tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, e->time.tv_nsec / 1000,
                      (int)getpid());
    put_file(sb, e->file);
    strbuf_printf(sb, ":%d] ", e->line);
}

/* Writes one character. Returns how many bytes of s it has. */
static size_t escape_one(struct strbuf *sb, const unsigned char *at, bool strict)
{
    static const char names_of[] = "btn\0fr"; /* from backspace to return */
    unsigned char c = *at;
    size_t control = control_bytes(at);
    if (c == '"' || c == '\\')
        strbuf_printf(sb, "\\%c", c);
    else if (c >= '\b' && c <= '\r' && c != '\v')
        strbuf_printf(sb, "\\%c", names_of[c - '\b']);
    else if (control && (control == 2 || c < 0x80 || !strict))
        strbuf_printf(sb, "\\u%04X", at[control - 1]);
    else if (c < 0x80)
        strbuf_putc(sb, (char)c);
    else if (utf8_bytes(at))
        strbuf_append(sb, at, utf8_bytes(at));
    else if (strict)
        strbuf_puts(sb, "\xef\xbf\xbd");
    else
        strbuf_putc(sb, (char)c);
    if (control)
        return control;
    return c >= 0x80 && utf8_bytes(at) ? utf8_bytes(at) : 1;
}

void log_text_escape(struct strbuf *sb, const char *s, bool strict)
{
    const unsigned char *at = (const unsigned char *)s;
    while (*at)
        at += escape_one(sb, at, strict);
}

void log_text_escape_some(struct strbuf *sb, const char *s, bool strict, size_t most)
{
    const unsigned char *at = (const unsigned char *)s;
    size_t end = sb->len + most;
    while (*at) {
        size_t before = sb->len;
        at += escape_one(sb, at, strict);
        if (sb->len > end) {
            sb->len = before;
            strbuf_puts(sb, "...");
            return;
        }
    }
}

#define ID_PREFIX  "[request id: "
#define ID_UNKNOWN "<id_unknown>"

/* True if the message names its request; errors about a request do. */
static bool names_request(const struct log_entry *e)
{
    return strncmp(e->message, ID_PREFIX, strlen(ID_PREFIX)) == 0;
}

static void put_reference(struct strbuf *sb, const struct log_entry *e)
{
    put_prefix(sb, e);
    if (e->table) {
        strbuf_printf(sb, "\n%s\n", e->message);
        return;
    }
    if (e->escape)
        strbuf_putc(sb, '"');
    if (e->request_id && !names_request(e)) {
        strbuf_puts(sb, ID_PREFIX);
        if (e->escape)
            log_text_escape(sb, *e->request_id ? e->request_id : ID_UNKNOWN, false);
        else
            strbuf_puts(sb, *e->request_id ? e->request_id : ID_UNKNOWN);
        strbuf_puts(sb, "] ");
    }
    if (e->escape)
        log_text_escape(sb, e->message, false);
    else
        strbuf_puts(sb, e->message);
    if (e->held)
        strbuf_printf(sb, " (%u like lines held back)", e->held);
    strbuf_puts(sb, e->escape ? "\"\n" : "\n");
}

/* Writes the request id: the one that the message names, or that of the thread's context. */
static void put_json_id(struct strbuf *sb, const struct log_entry *e)
{
    char id[LOG_CONTEXT_BYTES];
    const char *known = e->request_id;
    const char *named = strstr(e->message, ID_PREFIX);
    if (named && !known) {
        const char *from = named + strlen(ID_PREFIX);
        const char *to = strstr(from, "] ");
        size_t len = to ? (size_t)(to - from) : 0;
        len = len < sizeof(id) ? len : sizeof(id) - 1;
        memcpy(id, from, len);
        id[len] = '\0';
        known = strcmp(id, ID_UNKNOWN) == 0 ? NULL : id;
    }
    if (!known || !*known)
        return;
    strbuf_puts(sb, ",\"request_id\":\"");
    log_text_escape(sb, known, true);
    strbuf_putc(sb, '"');
}

/* Writes the folder of the source file. */
static void put_component(struct strbuf *sb, const struct log_entry *e)
{
    char folder[MOST_FOLDER_BYTES];
    size_t len = e->component_len < sizeof(folder) ? e->component_len : sizeof(folder) - 1;
    memcpy(folder, e->component, len);
    folder[len] = '\0';
    log_text_escape(sb, folder, true);
}

static void log_text_put_json(struct strbuf *sb, const struct log_entry *e)
{
    strbuf_puts(sb, "{\"time\":\"");
    log_text_time(sb, &e->time);
    strbuf_printf(sb, "\",\"level\":\"%s\",\"pid\":%d,\"component\":\"", names[e->level],
                  (int)getpid());
    put_component(sb, e);
    strbuf_puts(sb, "\",\"source\":\"");
    log_text_escape_some(sb, e->file, true, MOST_FILE_BYTES);
    strbuf_printf(sb, ":%d\",\"message\":\"", e->line);
    log_text_escape(sb, e->message, true);
    strbuf_putc(sb, '"');
    put_json_id(sb, e);
    if (e->held)
        strbuf_printf(sb, ",\"held_back\":%u", e->held);
    strbuf_puts(sb, "}\n");
}

void log_text_put(struct strbuf *sb, const struct log_entry *entry)
{
    if (entry->format == LOG_FORMAT_JSON)
        log_text_put_json(sb, entry);
    else
        put_reference(sb, entry);
}
