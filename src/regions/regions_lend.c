#include "regions/regions_lend.h"

#include "infer/request.h"
#include "infer/response.h"
#include "regions/region.h"

/* A part that a request was lent. Lies in its arena. */
struct lent {
    struct lent *next;
    struct region *region; /* a reference */
    bool used;             /* by the request, which is not answered yet */
};

static void stop_using(struct lent *l)
{
    if (l->used)
        regions_unuse(l->region);
    l->used = false;
}

static void give_back(void *lent)
{
    struct lent *l = lent;
    stop_using(l); /* of a request that was never submitted */
    region_unref(l->region);
}

static struct err *lend(struct regions *s, struct request *r, const struct regions_part *p,
                        struct region **ret, struct tensor_piece *ret_piece)
{
    uint8_t *data;
    struct err *e = regions_use(s, p->region, p->offset, p->byte_size, ret, &data);
    if (e)
        return e;
    *ret_piece = (struct tensor_piece){
        .data = data,
        .size = p->byte_size,
        .memory = (*ret)->kind == REGION_CUDA ? BUF_MEMORY_GPU : BUF_MEMORY_CPU,
        .device = (*ret)->device,
    };
    struct lent *l = arena_alloc(&r->arena, sizeof(*l));
    *l = (struct lent){.next = r->slots[REQUEST_SLOT_REGIONS], .region = *ret, .used = true};
    r->slots[REQUEST_SLOT_REGIONS] = l;
    r->memory_shared = true;
    arena_on_end(&r->arena, give_back, l);
    return NULL;
}

struct err *regions_lend_input(struct regions *s, struct request *r, const struct regions_part *p,
                               struct tensor_piece *ret)
{
    struct region *region;
    return lend(s, r, p, &region, ret);
}

struct err *regions_lend_output(struct regions *s, struct request *r, const struct regions_part *p,
                                const char *output)
{
    struct region *region;
    struct tensor_piece piece;
    struct err *e = lend(s, r, p, &region, &piece);
    if (!e)
        request_place_output(r, output, region->name, &piece);
    return e;
}

void regions_lend_settle(struct response *r)
{
    for (struct lent *l = r->request->slots[REQUEST_SLOT_REGIONS]; l; l = l->next) {
        if (!r->error)
            r->error = region_check(l->region, "while the request used it");
        if (r->flags & RESPONSE_FINAL)
            stop_using(l);
    }
}
