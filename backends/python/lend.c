#include "lend.h"

#include <stdlib.h>
#include <string.h>

#include "common/bcuda.h"
#include "common/berr.h"
#include "device.h"
#include "link.h"

/* Memory that the stub has. */
struct loan {
    struct loan *next;
    uint64_t place; /* its number, which is no offset in the shared memory */
    void *memory;
};

struct lend {
    struct bcuda *cuda;
    TRITONBACKEND_MemoryManager *manager;
    uint64_t last;
    struct loan *loans;
};

TRITONSERVER_Error *lend_open(TRITONBACKEND_ModelInstance *instance, struct lend **ret_lend)
{
    TRITONBACKEND_Model *model;
    TRITONBACKEND_Backend *backend;
    struct lend *lend = calloc(1, sizeof *lend);
    if (!lend)
        return berr_no_memory();
    lend->last = LINK_MAPPED;
    TRITONSERVER_Error *err = TRITONBACKEND_ModelInstanceModel(instance, &model);
    if (!err)
        err = TRITONBACKEND_ModelBackend(model, &backend);
    if (!err)
        err = TRITONBACKEND_BackendMemoryManager(backend, &lend->manager);
    if (!err)
        err = bcuda_open(instance, &lend->cuda);
    if (err)
        free(lend);
    else
        *ret_lend = lend;
    return err;
}

static void loan_free(struct lend *lend, struct loan *loan)
{
    if (loan->memory)
        berr_log(TRITONBACKEND_MemoryManagerFree(lend->manager, loan->memory,
                                                 TRITONSERVER_MEMORY_GPU, bcuda_device(lend->cuda)),
                 "cannot give memory of a GPU back");
    free(loan);
}

void lend_end(struct lend *lend, uint64_t place)
{
    struct loan **at = lend ? &lend->loans : NULL;
    while (at && *at && (*at)->place != place)
        at = &(*at)->next;
    if (!at || !*at)
        return;
    struct loan *loan = *at;
    *at = loan->next;
    loan_free(lend, loan);
}

void lend_end_all(struct lend *lend)
{
    while (lend && lend->loans)
        lend_end(lend, lend->loans->place);
}

void lend_close(struct lend *lend)
{
    if (!lend)
        return;
    lend_end_all(lend);
    bcuda_close(lend->cuda);
    free(lend);
}

/* Copies the buffers of an input, wherever they lie. */
static TRITONSERVER_Error *loan_fill(struct lend *lend, const struct loan *loan,
                                     TRITONBACKEND_Input *input, uint32_t buffers, uint64_t bytes)
{
    uint64_t copied = 0;
    TRITONSERVER_Error *err = NULL;
    for (uint32_t i = 0; i < buffers && !err; i++) {
        const void *buffer;
        uint64_t size;
        TRITONSERVER_MemoryType kind = TRITONSERVER_MEMORY_GPU;
        int64_t number = bcuda_device(lend->cuda);
        err = TRITONBACKEND_InputBuffer(input, i, &buffer, &size, &kind, &number);
        if (!err && size > bytes - copied)
            err = berr_new(TRITONSERVER_ERROR_INTERNAL, "an input has more bytes than it says");
        if (!err && size)
            err = bcuda_copy(lend->cuda, (char *)loan->memory + copied, buffer, size);
        copied += err ? 0 : size;
    }
    TRITONSERVER_Error *late = bcuda_wait(lend->cuda);
    if (err)
        berr_drop(late);
    return err ? err : late;
}

static TRITONSERVER_Error *loan_share(struct lend *lend, const struct loan *loan,
                                      struct wire_tensor *tensor)
{
    struct device_task task = {
        .what = DEVICE_SHARE, .device = bcuda_device(lend->cuda), .from = (uintptr_t)loan->memory};
    char said[400];
    if (!device_do(&task)) {
        device_said(&task, said, sizeof said);
        return berr_new(TRITONSERVER_ERROR_INTERNAL, "input '%s' on %s", tensor->name, said);
    }
    tensor->place = WIRE_GPU;
    tensor->where = loan->place;
    tensor->gpu = (struct wire_gpu){.offset = task.offset, .device = task.device};
    memcpy(tensor->gpu.handle, task.handle.bytes, sizeof tensor->gpu.handle);
    return NULL;
}

static TRITONSERVER_Error *loan_new(struct lend *lend, TRITONBACKEND_Input *input, uint32_t buffers,
                                    struct wire_tensor *tensor)
{
    struct loan *loan = calloc(1, sizeof *loan);
    if (!loan)
        return berr_no_memory();
    TRITONSERVER_Error *err =
        TRITONBACKEND_MemoryManagerAllocate(lend->manager, &loan->memory, TRITONSERVER_MEMORY_GPU,
                                            bcuda_device(lend->cuda), tensor->bytes);
    loan->place = ++lend->last;
    if (err)
        loan->memory = NULL;
    else
        err = loan_fill(lend, loan, input, buffers, tensor->bytes);
    if (!err)
        err = loan_share(lend, loan, tensor);
    if (err) {
        loan_free(lend, loan);
        return err;
    }
    loan->next = lend->loans;
    lend->loans = loan;
    return NULL;
}

TRITONSERVER_Error *lend_input(struct lend *lend, TRITONBACKEND_Input *input, uint32_t buffers,
                               struct wire_tensor *tensor)
{
    const void *buffer;
    uint64_t size;
    TRITONSERVER_MemoryType kind = TRITONSERVER_MEMORY_GPU;
    if (!lend || !buffers || !tensor->bytes || tensor->datatype == TRITONSERVER_TYPE_BYTES)
        return NULL;
    int64_t number = bcuda_device(lend->cuda);
    TRITONSERVER_Error *err = TRITONBACKEND_InputBuffer(input, 0, &buffer, &size, &kind, &number);
    if (err || kind != TRITONSERVER_MEMORY_GPU)
        return err;
    return loan_new(lend, input, buffers, tensor);
}
