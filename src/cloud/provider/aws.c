#include "cloud/provider/aws.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "os/files/file.h"
#include "cloud/provider/aws_identity.h"
#include "cloud/provider/aws_role.h"
#include "cloud/provider/credential_file.h"
#include "cloud/provider/ini.h"

#include <stdlib.h>
#include <string.h>

#define MAX_FILE_BYTES ((size_t)1 << 20)

void aws_key_fini(struct aws_key *k)
{
    mem_free(k->id);
    mem_free(k->secret);
    mem_free(k->token);
    *k = (struct aws_key){0};
}

static const char *aws_env(const char *name)
{
    const char *value = getenv(name);
    return value ? value : "";
}

/* The text of a configuration file, "" if it does not exist; the caller frees it. */
static char *aws_read_file(const char *variable, const char *usual)
{
    struct strbuf path = STRBUF_INIT;
    char *text = NULL;
    size_t len;
    if (*aws_env(variable))
        strbuf_puts(&path, aws_env(variable));
    else
        strbuf_printf(&path, "%s/.aws/%s", aws_env("HOME"), usual);
    struct err *e = file_read(strbuf_str(&path), MAX_FILE_BYTES, &text, &len);
    if (e && err_code(e) != STATUS_NOT_FOUND)
        LOG_WARN("not read: %s", err_message(e));
    err_free(e);
    strbuf_fini(&path);
    return text ? text : mem_strdup("");
}

/* The texts of both files about a profile. */
struct profile {
    char *credentials;
    char *config;
    struct strbuf section; /* of the configuration file */
    const char *name;
};

static void profile_open(struct profile *p, const char *name)
{
    p->name = *name ? name : "default";
    p->credentials = aws_read_file("AWS_SHARED_CREDENTIALS_FILE", "credentials");
    p->config = aws_read_file("AWS_CONFIG_FILE", "config");
    p->section = (struct strbuf)STRBUF_INIT;
    strbuf_printf(&p->section, "%s%s", strcmp(p->name, "default") == 0 ? "" : "profile ", p->name);
}

static void profile_close(struct profile *p)
{
    mem_free(p->credentials);
    mem_free(p->config);
    strbuf_fini(&p->section);
}

/* A value of a profile; "" if neither file has it. The caller frees it. */
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

/* A copy for a lease; NULL stays NULL. */
static void *copy_key(const void *value)
{
    const struct aws_key *from = value;
    struct aws_key *k = MEM_NEW(struct aws_key);
    *k = (struct aws_key){.id = mem_strdup(from->id),
                          .secret = mem_strdup(from->secret),
                          .token = mem_strdup(from->token),
                          .ends_wall_ns = from->ends_wall_ns};
    return k;
}

static void drop_key(void *value)
{
    if (value)
        aws_key_fini(value);
    mem_free(value);
}

/* Finds the key of a profile, a web identity, a container or an instance. ret_none: why there is
 * none; NULL = there is one. */
static struct err *find_key(struct aws *a, void *session, struct aws_key *ret,
                            struct err **ret_none)
{
    *ret_none = NULL;
    if (from_profile(a, ret))
        return NULL;
    if (aws_identity_is_there())
        return aws_identity_get(a->net, session, a->region, ret);
    return aws_role_get(a->net, session, ret, ret_none);
}

static struct err *aws_fetch(void *owner, void *session, struct lease_fresh *ret)
{
    struct aws *a = owner;
    struct aws_key key = {0};
    struct err *none;
    struct err *e = find_key(a, session, &key, &none);
    if (e)
        return e;
    if (none && !a->said)
        LOG_WARN("no AWS credentials were found: requests to S3 are not signed (%s)",
                 err_message(none));
    a->said = none;
    uint64_t now = clock_wall_ns();
    if (key.ends_wall_ns)
        ret->life = key.ends_wall_ns > now ? key.ends_wall_ns - now : 0;
    const struct aws_key anonymous = {
        .id = (char[]){""}, .secret = (char[]){""}, .token = (char[]){""}};
    ret->none = none;
    ret->value = copy_key(none ? &anonymous : &key);
    aws_key_fini(&key);
    err_free(none);
    return NULL;
}

static const char *first_of(const char *a, const char *b, const char *c, const char *d)
{
    return *a ? a : *b ? b : *c ? c : d;
}

static void take_fixed_key(struct aws *a, const char *id, const char *secret, const char *token)
{
    if (!*id || !*secret)
        return;
    a->fixed = true;
    a->key = (struct aws_key){
        .id = mem_strdup(id), .secret = mem_strdup(secret), .token = mem_strdup(token)};
}

struct err *aws_init(struct aws *a, struct call_net *net, const struct credential_entry *entry)
{
    static const struct lease_kind kind = {.fetch = aws_fetch, .copy = copy_key, .drop = drop_key};
    *a = (struct aws){.net = net};
    lease_init(&a->lease, &kind, a);
    const char *region = "";
    const char *profile = aws_env("AWS_PROFILE");
    if (entry) {
        take_fixed_key(a, credential_file_text(entry, "key_id"),
                       credential_file_text(entry, "secret_key"),
                       credential_file_text(entry, "session_token"));
        region = credential_file_text(entry, "region");
        profile = credential_file_text(entry, "profile");
    } else {
        take_fixed_key(a, aws_env("AWS_ACCESS_KEY_ID"), aws_env("AWS_SECRET_ACCESS_KEY"),
                       aws_env("AWS_SESSION_TOKEN"));
    }
    a->profile = mem_strdup(profile);
    struct profile p;
    profile_open(&p, profile);
    char *of_profile = profile_value(&p, "region");
    region = first_of(region, aws_env("AWS_DEFAULT_REGION"), aws_env("AWS_REGION"), of_profile);
    a->region = mem_strdup(*region ? region : "us-east-1");
    mem_free(of_profile);
    char *endpoint = profile_value(&p, "endpoint_url");
    const char *chosen =
        first_of(aws_env("AWS_ENDPOINT_URL_S3"), aws_env("AWS_ENDPOINT_URL"), endpoint, "");
    if (*chosen)
        a->endpoint = mem_strdup(chosen);
    mem_free(endpoint);
    struct err *e = NULL;
    if (*profile && !a->fixed && !profile_is_there(&p))
        e = err_new(STATUS_NOT_FOUND, "the AWS profile '%s' is in neither of its files", profile);
    profile_close(&p);
    if (e)
        aws_fini(a);
    return e;
}

void aws_fini(struct aws *a)
{
    aws_key_fini(&a->key);
    lease_fini(&a->lease);
    mem_free(a->profile);
    mem_free(a->region);
    mem_free(a->endpoint);
}

struct err *aws_get(struct aws *a, void *session, struct aws_key *ret)
{
    void *found = a->fixed ? copy_key(&a->key) : NULL;
    struct err *e = found ? NULL : lease_get(&a->lease, session, &found);
    if (e)
        return e;
    struct aws_key *key = found;
    *ret = *key;
    mem_free(key);
    return NULL;
}

bool aws_refused(struct aws *a)
{
    return !a->fixed && lease_refused(&a->lease);
}

bool aws_is_anonymous(struct aws *a)
{
    return !a->fixed && lease_is_none(&a->lease);
}
