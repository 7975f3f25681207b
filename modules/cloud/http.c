/* HTTP through libcurl: one easy handle per session, which keeps its connections open. */
#include "module.h"

#include <curl/curl.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* An exchange that is slower than this counts as stalled. */
#define STALL_BYTES_PER_S 100L

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void init_once(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

void *http_session_new(void)
{
    pthread_once(&once, init_once);
    return curl_easy_init();
}

void http_session_free(void *session)
{
    curl_easy_cleanup(session);
}

struct exchange {
    CURL *curl;
    struct cloud_abi_http *x;
    bool refused;   /* a callback returned false */
    bool connected; /* the request could be sent */
};

static void take_status(struct exchange *e)
{
    long status = 0;
    curl_easy_getinfo(e->curl, CURLINFO_RESPONSE_CODE, &status);
    e->x->status = (int)status;
}

/* Handles a header line. The status line and the empty line have no colon. */
static size_t header(char *data, size_t size, size_t count, void *arg)
{
    struct exchange *e = arg;
    size_t len = size * count;
    if (len >= 5 && memcmp(data, "HTTP/", 5) == 0) {
        take_status(e);
        return len;
    }
    const char *colon = memchr(data, ':', len);
    if (!colon)
        return len;
    const char *value = colon + 1;
    const char *end = data + len;
    while (end > value && (end[-1] == '\r' || end[-1] == '\n' || end[-1] == ' '))
        end--;
    while (value < end && (*value == ' ' || *value == '\t'))
        value++;
    take_status(e);
    e->refused =
        !e->x->on_header(e->x->owner, data, (size_t)(colon - data), value, (size_t)(end - value));
    return e->refused ? 0 : len;
}

static size_t body(char *data, size_t size, size_t count, void *arg)
{
    struct exchange *e = arg;
    size_t len = size * count;
    take_status(e);
    e->refused = !e->x->on_body(e->x->owner, data, len);
    return e->refused ? 0 : len;
}

static int progress(void *arg, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    (void)a;
    (void)b;
    (void)c;
    (void)d;
    const struct exchange *e = arg;
    return e->x->cancel && atomic_load_explicit(e->x->cancel, memory_order_relaxed);
}

static int before_request(void *arg, char *to, char *from, int to_port, int from_port)
{
    (void)to;
    (void)from;
    (void)to_port;
    (void)from_port;
    struct exchange *e = arg;
    e->connected = true;
    return CURL_PREREQFUNC_OK;
}

static struct curl_slist *header_list(const struct cloud_abi_http *x)
{
    struct curl_slist *list = NULL;
    for (size_t i = 0; x->headers && x->headers[i]; i++) {
        struct curl_slist *longer = curl_slist_append(list, x->headers[i]);
        if (longer)
            list = longer;
    }
    return list;
}

static void set_request(struct exchange *e, struct curl_slist *headers)
{
    const struct cloud_abi_http *x = e->x;
    CURL *c = e->curl;
    curl_easy_setopt(c, CURLOPT_URL, x->url);
    curl_easy_setopt(c, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(c, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers);
    if (x->body) {
        curl_easy_setopt(c, CURLOPT_POSTFIELDS, x->body);
        curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)x->body_len);
    } else if (strcmp(x->method, "HEAD") == 0) {
        curl_easy_setopt(c, CURLOPT_NOBODY, 1L);
    }
    if (strcmp(x->method, "HEAD") != 0)
        curl_easy_setopt(c, CURLOPT_CUSTOMREQUEST, x->method);
    if (x->ca_file)
        curl_easy_setopt(c, CURLOPT_CAINFO, x->ca_file);
    if (x->direct)
        curl_easy_setopt(c, CURLOPT_NOPROXY, "*");
}

static void set_limits(struct exchange *e)
{
    CURL *c = e->curl;
    curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, (long)e->x->connect_ms);
    curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)e->x->total_ms);
    curl_easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, STALL_BYTES_PER_S);
    curl_easy_setopt(c, CURLOPT_LOW_SPEED_TIME, (long)e->x->stall_secs);
    curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, progress);
    curl_easy_setopt(c, CURLOPT_XFERINFODATA, e);
}

/* True for failures that a retry cannot repair. */
static bool is_hopeless(CURLcode code)
{
    return code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE ||
           code == CURLE_UNSUPPORTED_PROTOCOL || code == CURLE_URL_MALFORMAT;
}

static bool was_refused(const struct exchange *e, CURLcode code)
{
    long number = 0;
    if (e->connected || code != CURLE_COULDNT_CONNECT)
        return false;
    curl_easy_getinfo(e->curl, CURLINFO_OS_ERRNO, &number);
    return number == ECONNREFUSED || number == EHOSTUNREACH || number == ENETUNREACH ||
           number == EHOSTDOWN;
}

void http_run(void *session, struct cloud_abi_http *x)
{
    struct exchange e = {.curl = session, .x = x};
    struct curl_slist *headers = header_list(x);
    char words[CURL_ERROR_SIZE] = "";
    x->status = 0;
    x->error[0] = '\0';
    x->hopeless = false;
    x->refused = x->silent = false;
    curl_easy_reset(session); /* keeps the connections open */
    set_request(&e, headers);
    set_limits(&e);
    curl_easy_setopt(session, CURLOPT_HEADERFUNCTION, header);
    curl_easy_setopt(session, CURLOPT_HEADERDATA, &e);
    curl_easy_setopt(session, CURLOPT_WRITEFUNCTION, body);
    curl_easy_setopt(session, CURLOPT_WRITEDATA, &e);
    curl_easy_setopt(session, CURLOPT_PREREQFUNCTION, before_request);
    curl_easy_setopt(session, CURLOPT_PREREQDATA, &e);
    curl_easy_setopt(session, CURLOPT_ERRORBUFFER, words);
    curl_easy_setopt(session, CURLOPT_USERAGENT, "nereid");
    CURLcode code = curl_easy_perform(session);
    if (code == CURLE_OK) {
        take_status(&e);
    } else {
        x->hopeless = is_hopeless(code);
        x->refused = was_refused(&e, code);
        x->silent = code == CURLE_OPERATION_TIMEDOUT && !x->status;
        snprintf(x->error, sizeof(x->error), "%s",
                 e.refused  ? "the answer was given up"
                 : words[0] ? words
                            : curl_easy_strerror(code));
    }
    curl_easy_setopt(session, CURLOPT_ERRORBUFFER, NULL);
    curl_slist_free_all(headers);
}
