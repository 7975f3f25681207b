#include "cloud/provider/aws_role.h"

#include "base/mem.h"
#include "base/strbuf.h"
#include "os/files/file.h"
#include "cloud/provider/aws.h"
#include "cloud/web/ask.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <yyjson.h>

#define MAX_BYTES       ((size_t)64 << 10)
#define CONTAINER_HOST  "http://169.254.170.2"
#define INSTANCE_HOST   "http://169.254.169.254"
#define TOKEN_LIFE_SECS "21600"

/* Parses "2026-11-21T14:00:00Z"; 0 if invalid. */
uint64_t aws_role_time(const char *text)
{
    struct tm tm = {0};
    if (!text || !strptime(text, "%Y-%m-%dT%H:%M:%S", &tm))
        return 0;
    return (uint64_t)timegm(&tm) * 1000000000u;
}

static const char *aws_role_text(yyjson_val *root, const char *name)
{
    const char *text = yyjson_get_str(yyjson_obj_get(root, name));
    return text ? text : "";
}

static struct err *read_key(const char *text, struct aws_key *ret)
{
    yyjson_doc *doc = yyjson_read(text, strlen(text), 0);
    yyjson_val *root = yyjson_doc_get_root(doc);
    const char *id = aws_role_text(root, "AccessKeyId");
    const char *secret = aws_role_text(root, "SecretAccessKey");
    struct err *e = NULL;
    if (*id && *secret)
        *ret = (struct aws_key){.id = mem_strdup(id),
                                .secret = mem_strdup(secret),
                                .token = mem_strdup(aws_role_text(root, "Token")),
                                .ends_wall_ns = aws_role_time(aws_role_text(root, "Expiration"))};
    else
        e = err_new(STATUS_UNAVAILABLE, "the endpoint for credentials answers without a key");
    yyjson_doc_free(doc);
    return e;
}

static const char *aws_role_env(const char *name)
{
    const char *value = getenv(name);
    return value ? value : "";
}

/* The value of the header Authorization for the container's endpoint; NULL = none. The caller
 * frees it. */
static char *container_token(void)
{
    struct strbuf header = STRBUF_INIT;
    char *text = NULL;
    size_t len;
    if (*aws_role_env("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"))
        err_free(file_read(aws_role_env("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"), MAX_BYTES, &text,
                           &len));
    const char *token = text ? text : aws_role_env("AWS_CONTAINER_AUTHORIZATION_TOKEN");
    if (*token)
        strbuf_printf(&header, "Authorization: %.*s", (int)strcspn(token, "\r\n"), token);
    mem_free(text);
    return header.len ? strbuf_take(&header) : NULL;
}

static struct err *of_container(struct call_net *net, void *session, const char *url,
                                struct aws_key *ret)
{
    char *text = NULL;
    char *header = container_token();
    struct err *e = ask_run(
        net, session,
        &(struct ask){.method = "GET", .url = url, .headers = {header}, .direct = true}, &text);
    if (!e)
        e = read_key(text, ret);
    mem_free(text);
    mem_free(header);
    return e;
}

static struct err *of_role(struct call_net *net, void *session, const char *header,
                           const char *base, struct aws_key *ret)
{
    static const char path[] = "/latest/meta-data/iam/security-credentials/";
    struct strbuf url = STRBUF_INIT;
    char *role = NULL;
    char *text = NULL;
    strbuf_printf(&url, "%s%s", base, path);
    struct ask a = {.method = "GET", .url = strbuf_str(&url), .headers = {header}, .direct = true};
    struct err *e = ask_run(net, session, &a, &role);
    if (!e) {
        strbuf_printf(&url, "%.*s", (int)strcspn(role, "\r\n"), role);
        a.url = strbuf_str(&url);
        e = ask_run(net, session, &a, &text);
    }
    if (!e)
        e = read_key(text, ret);
    mem_free(text);
    mem_free(role);
    strbuf_fini(&url);
    return e;
}

/* Asks the second version of the metadata service, which first needs a session token.
 * errors  NOT_FOUND: there is no such service, or the instance has no role */
static struct err *of_instance(struct call_net *net, void *session, const char *base,
                               struct aws_key *ret)
{
    struct strbuf url = STRBUF_INIT;
    struct strbuf header = STRBUF_INIT;
    char *token = NULL;
    strbuf_printf(&url, "%s/latest/api/token", base);
    struct ask a = {.method = "PUT",
                    .url = strbuf_str(&url),
                    .headers = {"X-aws-ec2-metadata-token-ttl-seconds: " TOKEN_LIFE_SECS},
                    .direct = true,
                    .maybe = true};
    struct err *e = ask_run(net, session, &a, &token);
    if (!e) {
        strbuf_printf(&header, "X-aws-ec2-metadata-token: %s", token);
        e = of_role(net, session, strbuf_str(&header), base, ret);
    }
    mem_free(token);
    strbuf_fini(&header);
    strbuf_fini(&url);
    return e;
}

/* Writes the container's endpoint that the environment names; "" if it names none. */
static void put_container_url(struct strbuf *url)
{
    if (*aws_role_env("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"))
        strbuf_printf(url, CONTAINER_HOST "%s",
                      aws_role_env("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"));
    else
        strbuf_puts(url, aws_role_env("AWS_CONTAINER_CREDENTIALS_FULL_URI"));
}

struct err *aws_role_get(struct call_net *net, void *session, struct aws_key *ret,
                         struct err **ret_none)
{
    struct strbuf url = STRBUF_INIT;
    struct err *e = NULL;
    put_container_url(&url);
    *ret_none = NULL;
    if (url.len) {
        e = of_container(net, session, strbuf_str(&url), ret);
    } else if (strcmp(aws_role_env("AWS_EC2_METADATA_DISABLED"), "true") == 0) {
        *ret_none = err_new(STATUS_NOT_FOUND, "AWS_EC2_METADATA_DISABLED is true");
    } else {
        const char *base = aws_role_env("AWS_EC2_METADATA_SERVICE_ENDPOINT");
        base = *base ? base : INSTANCE_HOST;
        size_t len = strlen(base);
        strbuf_append(&url, base, len - (base[len - 1] == '/'));
        e = of_instance(net, session, strbuf_str(&url), ret);
        if (e && err_code(e) == STATUS_NOT_FOUND) {
            *ret_none = e;
            e = NULL;
        }
    }
    strbuf_fini(&url);
    return err_wrap(e, "the role of this machine (AWS_EC2_METADATA_DISABLED=true if it has none)");
}
