#include "provider/aws.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "os/file.h"
#include "provider/aws_role.h"
#include "provider/credential_file.h"
#include "provider/ini.h"

#include <stdlib.h>
#include <string.h>

#define MAX_FILE_BYTES ((size_t)1 << 20)

/* A key is replaced so long before it ends, or at a fourth of a short life. */
#define RENEW_BEFORE_NS TIME_S(300)

void aws_key_fini(struct aws_key *k)
{
    mem_free(k->id);
    mem_free(k->secret);
    mem_free(k->token);
    *k = (struct aws_key){0};
}

static const char *env(const char *name)
{
    const char *value = getenv(name);
    return value ? value : "";
}

/* The text of a configuration file, "" when it is not there; the caller's. */
static char *read_file(const char *variable, const char *usual)
{
    struct strbuf path = STRBUF_INIT;
    char *text = NULL;
    size_t len;
    if (*env(variable))
        strbuf_puts(&path, env(variable));
    else
        strbuf_printf(&path, "%s/.aws/%s", env("HOME"), usual);
    struct err *e = file_read(strbuf_str(&path), MAX_FILE_BYTES, &text, &len);
    if (e && err_code(e) != STATUS_NOT_FOUND)
        LOG_WARN("not read: %s", err_message(e));
    err_free(e);
    strbuf_fini(&path);
    return text ? text : mem_strdup("");
}

/* What both files say of a profile. */
struct profile {
    char *credentials;
    char *config;
    struct strbuf section; /* of the configuration file */
    const char *name;
};

static void profile_open(struct profile *p, const char *name)
{
    p->name = *name ? name : "default";
    p->credentials = read_file("AWS_SHARED_CREDENTIALS_FILE", "credentials");
    p->config = read_file("AWS_CONFIG_FILE", "config");
    p->section = (struct strbuf)STRBUF_INIT;
    strbuf_printf(&p->section, "%s%s", strcmp(p->name, "default") == 0 ? "" : "profile ", p->name);
}

static void profile_close(struct profile *p)
{
    mem_free(p->credentials);
    mem_free(p->config);
    strbuf_fini(&p->section);
}

/* The caller's; "" when neither file says it. */
static char *profile_value(const struct profile *p, const char *name)
{
    char *value = ini_find(p->credentials, p->name, name);
    if (!value)
        value = ini_find(p->config, strbuf_str(&p->section), name);
    return value ? value : mem_strdup("");
}

static bool profile_is_there(const struct profile *p)
{
    char *in_credentials = ini_find(p->credentials, p->name, NULL);
    char *in_config = ini_find(p->config, strbuf_str(&p->section), NULL);
    bool there = in_credentials || in_config;
    mem_free(in_credentials);
    mem_free(in_config);
    return there;
}

static const char *first_of(const char *a, const char *b, const char *c, const char *d)
{
    return *a ? a : *b ? b : *c ? c : d;
}

static void take_fixed_key(struct aws *a, const char *id, const char *secret, const char *token)
{
    if (!*id || !*secret)
        return;
    a->fixed = a->have = true;
    a->key = (struct aws_key){
        .id = mem_strdup(id), .secret = mem_strdup(secret), .token = mem_strdup(token)};
}

struct err *aws_init(struct aws *a, struct call_net *net, const struct credential_entry *entry)
{
    *a = (struct aws){.net = net};
    mutex_init(&a->lock, MUTEX_RANK_LEAF);
    mutex_cond_init(&a->changed);
    const char *region = "";
    const char *profile = env("AWS_PROFILE");
    if (entry) {
        take_fixed_key(a, credential_file_text(entry, "key_id"),
                       credential_file_text(entry, "secret_key"),
                       credential_file_text(entry, "session_token"));
        region = credential_file_text(entry, "region");
        profile = credential_file_text(entry, "profile");
    } else {
        take_fixed_key(a, env("AWS_ACCESS_KEY_ID"), env("AWS_SECRET_ACCESS_KEY"),
                       env("AWS_SESSION_TOKEN"));
    }
    a->profile = mem_strdup(profile);
    struct profile p;
    profile_open(&p, profile);
    char *of_profile = profile_value(&p, "region");
    region = first_of(region, env("AWS_DEFAULT_REGION"), env("AWS_REGION"), of_profile);
    a->region = mem_strdup(*region ? region : "us-east-1");
    mem_free(of_profile);
    char *endpoint = profile_value(&p, "endpoint_url");
    const char *chosen =
        first_of(env("AWS_ENDPOINT_URL_S3"), env("AWS_ENDPOINT_URL"), endpoint, "");
    if (*chosen)
        a->endpoint = mem_strdup(chosen);
    mem_free(endpoint);
    struct err *e = NULL;
    if (*profile && !a->have && !profile_is_there(&p))
        e = err_new(STATUS_NOT_FOUND, "the AWS profile '%s' is in neither of its files", profile);
    profile_close(&p);
    if (e)
        aws_fini(a);
    return e;
}

void aws_fini(struct aws *a)
{
    aws_key_fini(&a->key);
    err_free(a->failed);
    mutex_cond_fini(&a->changed);
    mutex_fini(&a->lock);
    mem_free(a->profile);
    mem_free(a->region);
    mem_free(a->endpoint);
}

static bool from_profile(const struct aws *a, struct aws_key *ret)
{
    struct profile p;
    profile_open(&p, a->profile);
    *ret = (struct aws_key){.id = profile_value(&p, "aws_access_key_id"),
                            .secret = profile_value(&p, "aws_secret_access_key"),
                            .token = profile_value(&p, "aws_session_token")};
    profile_close(&p);
    if (*ret->id && *ret->secret)
        return true;
    aws_key_fini(ret);
    return false;
}

static struct err *fetch(struct aws *a, void *session, struct aws_key *ret)
{
    if (from_profile(a, ret))
        return NULL;
    bool found;
    struct err *e = aws_role_get(a->net, session, ret, &found);
    if (e || found)
        return e;
    LOG_WARN("no AWS credentials were found: requests to S3 are not signed");
    *ret =
        (struct aws_key){.id = mem_strdup(""), .secret = mem_strdup(""), .token = mem_strdup("")};
    return NULL;
}

static bool still_good(const struct aws *a)
{
    return a->have && (!a->renew_wall_ns || clock_wall_ns() < a->renew_wall_ns);
}

static void take_key(struct aws *a, const struct aws_key *fresh)
{
    uint64_t now = clock_wall_ns();
    uint64_t life = fresh->ends_wall_ns > now ? fresh->ends_wall_ns - now : 0;
    uint64_t early = life / 4 < RENEW_BEFORE_NS ? life / 4 : RENEW_BEFORE_NS;
    aws_key_fini(&a->key);
    a->key = *fresh;
    a->have = true;
    a->renew_wall_ns = fresh->ends_wall_ns ? now + life - early : 0;
}

/* Lock held, but not while it is fetched. */
static struct err *renew(struct aws *a, void *session)
{
    struct aws_key fresh = {0};
    a->busy = true;
    mutex_unlock(&a->lock);
    struct err *e = fetch(a, session, &fresh);
    mutex_lock(&a->lock);
    a->busy = false;
    a->rounds++;
    err_free(a->failed);
    a->failed = err_copy(e);
    mutex_cond_broadcast(&a->changed);
    if (!e) {
        take_key(a, &fresh);
    } else if (a->have && clock_wall_ns() < a->key.ends_wall_ns) { /* it holds a while longer */
        err_free(e);
        e = NULL;
    }
    return e;
}

struct err *aws_get(struct aws *a, void *session, struct aws_key *ret)
{
    struct err *e = NULL;
    mutex_lock(&a->lock);
    uint64_t rounds = a->rounds;
    while (a->busy)
        mutex_cond_wait(&a->changed, &a->lock);
    if (!still_good(a) && a->rounds != rounds && a->failed)
        e = err_copy(a->failed); /* the one that was waited for: a second one would take as long */
    else if (!still_good(a))
        e = renew(a, session);
    if (!e)
        *ret = (struct aws_key){.id = mem_strdup(a->key.id),
                                .secret = mem_strdup(a->key.secret),
                                .token = mem_strdup(a->key.token)};
    mutex_unlock(&a->lock);
    return e;
}

bool aws_refused(struct aws *a)
{
    if (a->fixed)
        return false;
    mutex_lock(&a->lock);
    if (!a->busy)
        a->have = false;
    mutex_unlock(&a->lock);
    return true;
}
