#include "infer/on_host.h"

#include "gpu/gpu_copy.h"
#include "infer/request.h"

struct gpu_copy_place on_host_place_of(const struct tensor_piece *p)
{
    return (struct gpu_copy_place){
        .data = (void *)(uintptr_t)p->data, .memory = p->memory, .device = p->device};
}

bool on_host_is(const struct tensor_input *in)
{
    for (uint32_t i = 0; i < in->piece_count; i++)
        if (in->pieces[i].memory == BUF_MEMORY_GPU)
            return false;
    return true;
}

struct err *on_host_piece(struct tensor_input *in, const struct tensor_piece *pieces,
                          uint32_t index)
{
    /* the array is the request's own, like the copy that it names from now on, and nobody else
     * reads it now */
    struct tensor_piece *p = (struct tensor_piece *)(uintptr_t)&pieces[index];
    if (p->memory != BUF_MEMORY_GPU)
        return NULL;
    void *copy;
    struct err *e = request_keep(in->request, p->size ? p->size : 1, &copy);
    if (!e)
        e = gpu_copy(gpu_copy_host(copy), on_host_place_of(p), p->size);
    if (e)
        return err_wrap(e, "input '%s'", in->name);
    *p = (struct tensor_piece){.data = copy, .size = p->size, .memory = BUF_MEMORY_CPU};
    return NULL;
}

struct err *on_host_inputs(struct request *r)
{
    struct err *e = NULL;
    for (uint32_t i = 0; !e && i < r->input_count; i++)
        for (uint32_t k = 0; !e && k < r->inputs[i].piece_count; k++)
            e = on_host_piece(&r->inputs[i], r->inputs[i].pieces, k);
    return e;
}

struct err *on_host_copy(const struct tensor_input *in, void *to)
{
    struct err *e = NULL;
    char *at = to;
    for (uint32_t i = 0; !e && i < in->piece_count; i++) {
        e = gpu_copy(gpu_copy_host(at), on_host_place_of(&in->pieces[i]), in->pieces[i].size);
        at += in->pieces[i].size;
    }
    return e;
}
