/* A response from the bytes that a response cache returns. A response that can be unpacked must
 * pack and unpack again to the same one. */
#include "base/check.h"
#include "base/mem.h"
#include "infer/request.h"
#include "infer/response.h"
#include "model/config.h"
#include "proto/model_config.pb-c.h"
#include "cache/cache_pack.h"

#include <string.h>

static struct request_target target;

static void unpin(struct request_target *t)
{
    (void)t;
}

static void set_up(void)
{
    struct Inference__ModelConfig *proto = config_new_proto();
    struct model_config *config;
    struct err *e = config_compile(&proto, &config);
    CHECK(!e);
    target = (struct request_target){.config = config, .unpin = unpin};
}

static void write_again(struct request *request, const struct response *r)
{
    uint64_t size = cache_pack_size(r);
    uint8_t *data = mem_alloc(size);
    cache_pack_write(r, data);
    struct response *same = response_new(request);
    struct err *e = cache_pack_read(data, size, same);
    CHECK(!e && cache_pack_size(same) == size);
    uint8_t *again = mem_alloc(size);
    cache_pack_write(same, again);
    CHECK(memcmp(data, again, size) == 0);
    mem_free(again);
    response_free(same);
    mem_free(data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!target.config)
        set_up();
    struct request *request = request_new(&target, NULL, NULL, NULL);
    struct response *r = response_new(request);
    struct err *e = cache_pack_read(data, size, r);
    if (e)
        CHECK(*err_message(e));
    else
        write_again(request, r);
    err_free(e);
    response_free(r);
    request_release(request);
    return 0;
}
