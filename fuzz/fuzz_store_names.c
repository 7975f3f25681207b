/* Answers of stores, and their configuration files: listings of S3, Azure and Google, profiles,
 * paths, tokens. The first byte chooses one. A model that passes the check has no file name that
 * leaves its directory. */
#include "base/check.h"
#include "base/mem.h"
#include "cloud/provider/azure_list.h"
#include "cloud/provider/ini.h"
#include "cloud/provider/kind.h"
#include "cloud/provider/s3_list.h"
#include "cloud/provider/listing.h"
#include "cloud/web/call.h"
#include "cloud/web/module.h"
#include "cloud/web/lease.h"
#include "cloud/web/token.h"
#include "cloud/web/url.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_at(struct listing *l)
{
    size_t at = 0;
    const char *name;
    size_t len;
    listing_sort(l);
    while (listing_next_model(l, &at, &name, &len)) {
        size_t first;
        size_t count;
        char *model = mem_strndup(name, len);
        listing_model(l, model, &first, &count);
        CHECK(count > 0 && first + count == at);
        CHECK(listing_stamp(l, first, count, LISTING_ALL) != 0);
        struct err *e = listing_check(l, first, count);
        for (size_t i = first; !e && i < first + count; i++)
            CHECK(!strstr(l->objects[i].name, "/../") && l->objects[i].name[0] != '/');
        err_free(e);
        mem_free(model);
    }
}

enum what {
    WHAT_S3,
    WHAT_AZURE,
    WHAT_NAMES,
    WHAT_GCS,
    WHAT_TOKEN,
    WHATS,
};

/* A repository at gs://b/p, which stays open. */
static void *gcs(const struct cloud_abi *abi)
{
    static struct call_net net;
    static void *site;
    if (site)
        return site;
    call_net_init(&net, abi, TIME_S(1), NULL);
    CHECK(!gcs_kind.open("gs://b/p", &net, &site));
    return site;
}

static void list(enum what what, const char *text, size_t len)
{
    const struct cloud_abi *abi;
    struct listing l;
    char *next = NULL;
    struct err *e = module_get(&abi);
    CHECK(!e);
    listing_init(&l);
    l.max = 1000;
    if (what == WHAT_S3)
        e = s3_list_read(abi, text, len, "p/", &l, &next);
    else if (what == WHAT_AZURE)
        e = azure_list_read(abi, text, len, "p/", &l, &next);
    else
        e = gcs_kind.read(gcs(abi), text, len, &l, &next);
    CHECK(!e || !next);
    look_at(&l);
    err_free(e);
    mem_free(next);
    listing_fini(&l);
}

static void names(const char *text)
{
    struct url_parts parts;
    mem_free(ini_find(text, "default", "key"));
    mem_free(ini_find(text, "profile x", NULL));
    struct err *e = url_parse(text, text, &parts);
    if (e) {
        err_free(e);
        return;
    }
    CHECK(*parts.bucket && !strchr(parts.bucket, '/') && !strstr(parts.prefix, "//"));
    url_parts_fini(&parts);
}

static void token(const char *text)
{
    struct lease_fresh found = {0};
    struct err *e = token_read(text, &found);
    CHECK(e ? !found.value
            : *(char *)found.value && found.life >= TIME_S(10) && found.life <= TIME_S(86400));
    err_free(e);
    mem_free(found.value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    char *text = malloc(size);
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    enum what what = (enum what)(data[0] % WHATS);
    if (what == WHAT_NAMES)
        names(text);
    else if (what == WHAT_TOKEN)
        token(text);
    else
        list(what, text, size - 1);
    free(text);
    return 0;
}
