#include "cloud/web/url.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

static bool url_plain(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

void url_escape(struct strbuf *sb, const char *text, size_t len, bool keep_slash)
{
    static const char digits[] = "0123456789ABCDEF";
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        if (url_plain(c) || (c == '/' && keep_slash)) {
            strbuf_putc(sb, (char)c);
            continue;
        }
        const char out[3] = {'%', digits[c >> 4], digits[c & 15]};
        strbuf_append(sb, out, sizeof(out));
    }
}

static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

size_t url_unescape(char *text, size_t len, bool plus)
{
    size_t to = 0;
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '%' && i + 2 < len && digit(text[i + 1]) >= 0 && digit(text[i + 2]) >= 0) {
            text[to++] = (char)(digit(text[i + 1]) * 16 + digit(text[i + 2]));
            i += 2;
        } else {
            text[to++] = plus && text[i] == '+' ? ' ' : text[i];
        }
    }
    return to;
}

char *url_prefix(const char *path)
{
    struct strbuf sb = STRBUF_INIT;
    while (*path) {
        path += strspn(path, "/");
        size_t len = strcspn(path, "/");
        if (len) {
            strbuf_append(&sb, path, len);
            strbuf_putc(&sb, '/');
        }
        path += len;
    }
    return strbuf_take(&sb);
}

void url_for_all(struct strbuf *sb, const char *url)
{
    const char *scheme = strstr(url, "://");
    const char *host = scheme ? scheme + 3 : url;
    strbuf_append(sb, url, (size_t)(host - url));
    for (const char *end = host + strcspn(host, "/?#"), *at = host; at < end; at++)
        host = *at == '@' ? at + 1 : host;
    strbuf_append(sb, host, strcspn(host, "?"));
}

/* HOST, HOST:PORT or [ADDRESS]:PORT. */
static bool host_ok(const char *host, size_t len)
{
    size_t name = 0;
    if (len && host[0] == '[') {
        while (name < len && host[name] != ']')
            name++;
        name++;
    } else {
        while (name < len && (url_plain((unsigned char)host[name])))
            name++;
    }
    if (name == 0 || name > len)
        return false;
    if (name == len)
        return true;
    size_t digits = len - name - 1;
    if (host[name] != ':' || digits < 1 || digits > 5)
        return false;
    for (size_t i = name + 1; i < len; i++)
        if (host[i] < '0' || host[i] > '9')
            return false;
    unsigned long port = strtoul(host + name + 1, NULL, 10);
    return port >= 1 && port <= 65535;
}

struct err *url_parse(const char *rest, const char *whole, struct url_parts *ret)
{
    struct strbuf endpoint = STRBUF_INIT;
    rest += strspn(rest, "/");
    bool https = strncmp(rest, "https://", 8) == 0;
    bool http = strncmp(rest, "http://", 7) == 0;
    if (https || http)
        rest += https ? 8 : 7;
    rest += strspn(rest, "/");
    size_t len = strcspn(rest, "/");
    if (https || http || memchr(rest, ':', len)) {
        if (!host_ok(rest, len))
            return err_new(
                STATUS_INVALID_ARG,
                "model repository '%s': expected HOST:PORT in front of the bucket, found "
                "'%.*s'",
                whole, (int)len, rest);
        strbuf_printf(&endpoint, "%s://%.*s", https ? "https" : "http", (int)len, rest);
        rest += len;
        rest += strspn(rest, "/");
        len = strcspn(rest, "/");
    }
    if (!len) {
        strbuf_fini(&endpoint);
        return err_new(STATUS_INVALID_ARG, "model repository '%s': no bucket name in the path",
                       whole);
    }
    ret->endpoint = endpoint.len ? strbuf_take(&endpoint) : NULL;
    ret->bucket = mem_strndup(rest, len);
    ret->prefix = url_prefix(rest + len);
    return NULL;
}

void url_parts_fini(struct url_parts *p)
{
    mem_free(p->endpoint);
    mem_free(p->bucket);
    mem_free(p->prefix);
    *p = (struct url_parts){0};
}
