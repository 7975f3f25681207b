#pragma once
/* Response factories: a request held by one more reference, so that responses can be made after it was released. The
 * TRITONBACKEND_ResponseFactory of the C ABI is a token of one (base/token.h). */

struct request;

struct factory {
    struct request *request; /* a reference */
};

/* factory_new - takes a reference on the request. Never NULL. factory_free - NULL is fine. Any thread. */
struct factory *factory_new(struct request *request);
void factory_free(struct factory *f);

/* factory_handle - what the ABI gives out. factory_from - NULL when it is none, or none any more; factory_take - as that, for the
 * one who deletes it. */
void *factory_handle(const struct factory *f);
struct factory *factory_from(const void *handle);
struct factory *factory_take(const void *handle);
