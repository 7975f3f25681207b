#include "cloud/provider/aws_identity.h"

#include "base/mem.h"
#include "base/strbuf.h"
#include "os/files/file.h"
#include "cloud/provider/aws.h"
#include "cloud/provider/aws_role.h"
#include "cloud/web/ask.h"
#include "cloud/web/call.h"
#include "cloud/web/cloud_abi.h"
#include "cloud/web/url.h"

#include <stdlib.h>
#include <string.h>

#define MAX_TOKEN_BYTES ((size_t)64 << 10)

static const char *aws_identity_env(const char *name)
{
    const char *value = getenv(name);
    return value ? value : "";
}

bool aws_identity_is_there(void)
{
    return *aws_identity_env("AWS_WEB_IDENTITY_TOKEN_FILE") && *aws_identity_env("AWS_ROLE_ARN");
}

static void aws_identity_put_field(struct strbuf *sb, const char *name, const char *value,
                                   size_t len)
{
    strbuf_printf(sb, "&%s=", name);
    url_escape(sb, value, len, false);
}

static struct err *put_form(struct strbuf *sb)
{
    char *token;
    size_t len;
    const char *session = aws_identity_env("AWS_ROLE_SESSION_NAME");
    struct err *e =
        file_read(aws_identity_env("AWS_WEB_IDENTITY_TOKEN_FILE"), MAX_TOKEN_BYTES, &token, &len);
    if (e)
        return err_wrap(e, "AWS_WEB_IDENTITY_TOKEN_FILE");
    while (len && strchr(" \t\r\n", token[len - 1]))
        len--;
    session = *session ? session : "nereid";
    strbuf_puts(sb, "Action=AssumeRoleWithWebIdentity&Version=2011-06-15");
    aws_identity_put_field(sb, "RoleArn", aws_identity_env("AWS_ROLE_ARN"),
                           strlen(aws_identity_env("AWS_ROLE_ARN")));
    aws_identity_put_field(sb, "RoleSessionName", session, strlen(session));
    aws_identity_put_field(sb, "WebIdentityToken", token, len);
    mem_free(token);
    return NULL;
}

static void put_url(struct strbuf *sb, const char *region)
{
    const char *endpoint = aws_identity_env("AWS_ENDPOINT_URL_STS");
    endpoint = *endpoint ? endpoint : aws_identity_env("AWS_ENDPOINT_URL");
    size_t len = strlen(endpoint);
    while (len && endpoint[len - 1] == '/')
        len--;
    if (len)
        strbuf_printf(sb, "%.*s/", (int)len, endpoint);
    else
        strbuf_printf(sb, "https://sts.%s.amazonaws.com%s/", region,
                      strncmp(region, "cn-", 3) == 0 ? ".cn" : "");
}

/* The needed fields of the answer. */
struct answer {
    struct strbuf text;
    struct strbuf id;
    struct strbuf secret;
    struct strbuf token;
    struct strbuf ends;
};

static void aws_identity_opened(void *owner, const char *name)
{
    (void)name;
    struct answer *a = owner;
    a->text.len = 0;
}

static void aws_identity_wrote(void *owner, const char *data, size_t len)
{
    struct answer *a = owner;
    strbuf_append(&a->text, data, len);
}

static void aws_identity_closed(void *owner, const char *name)
{
    struct answer *a = owner;
    struct strbuf *to = strcmp(name, "AccessKeyId") == 0       ? &a->id
                        : strcmp(name, "SecretAccessKey") == 0 ? &a->secret
                        : strcmp(name, "SessionToken") == 0    ? &a->token
                        : strcmp(name, "Expiration") == 0      ? &a->ends
                                                               : NULL;
    if (to && !to->len)
        strbuf_append(to, a->text.data, a->text.len);
    a->text.len = 0;
}

static struct err *read_answer(const struct cloud_abi *abi, const char *text, struct aws_key *ret)
{
    struct answer a = {0};
    const struct cloud_abi_xml handler = {.open = aws_identity_opened,
                                          .text = aws_identity_wrote,
                                          .close = aws_identity_closed,
                                          .owner = &a};
    bool ok = abi->xml(text, strlen(text), &handler) && a.id.len && a.secret.len;
    struct err *e = NULL;
    if (ok)
        *ret = (struct aws_key){.id = mem_strdup(strbuf_str(&a.id)),
                                .secret = mem_strdup(strbuf_str(&a.secret)),
                                .token = mem_strdup(strbuf_str(&a.token)),
                                .ends_wall_ns = aws_role_time(strbuf_str(&a.ends))};
    else
        e = err_new(STATUS_UNAVAILABLE, "AssumeRoleWithWebIdentity answers without a key");
    strbuf_fini(&a.text);
    strbuf_fini(&a.id);
    strbuf_fini(&a.secret);
    strbuf_fini(&a.token);
    strbuf_fini(&a.ends);
    return e;
}

struct err *aws_identity_get(struct call_net *net, void *session, const char *region,
                             struct aws_key *ret)
{
    struct strbuf form = STRBUF_INIT;
    struct strbuf url = STRBUF_INIT;
    char *text = NULL;
    put_url(&url, region);
    struct err *e = put_form(&form);
    if (!e)
        e = ask_run(net, session,
                    &(struct ask){.method = "POST",
                                  .url = strbuf_str(&url),
                                  .headers = {"Content-Type: application/x-www-form-urlencoded"},
                                  .body = strbuf_str(&form)},
                    &text);
    if (!e)
        e = read_answer(net->abi, text, ret);
    mem_free(text);
    strbuf_fini(&url);
    strbuf_fini(&form);
    return err_wrap(e, "the role '%s'", aws_identity_env("AWS_ROLE_ARN"));
}
