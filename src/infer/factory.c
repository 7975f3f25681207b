#include "infer/factory.h"

#include "base/slab.h"
#include "infer/request.h"

static const struct slab slab = {
    .index = 2, .object_bytes = sizeof(struct factory), .tokens = true};

struct factory *factory_new(struct request *request)
{
    struct factory *f = slab_alloc(&slab);
    f->request = request_ref(request);
    return f;
}

void factory_free(struct factory *f)
{
    if (!f)
        return;
    request_unref(f->request);
    slab_free(&slab, f);
}

void *factory_handle(const struct factory *f)
{
    return token_make(slab_token(f), TOKEN_FACTORY, 0);
}

struct factory *factory_from(const void *handle)
{
    return token_find(handle, TOKEN_FACTORY, NULL);
}

struct factory *factory_take(const void *handle)
{
    return token_take(handle, TOKEN_FACTORY);
}
