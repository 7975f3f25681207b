#include "answer.h"

#include "array.h"
#include "block.h"

#include <stdlib.h>
#include <string.h>

struct answer_output {
    char *name;
    TRITONSERVER_DataType datatype;
    int64_t *shape;
    uint64_t rank;
    struct block *block;
    void *data;
    size_t bytes;
};

/* Keeps a block for the arrays over it. */
struct lent {
    PyObject_HEAD struct block *block;
};

static void lent_free(PyObject *self)
{
    block_unref(((struct lent *)self)->block);
    types_free(self);
}

static PyType_Slot lent_slots[] = {{Py_tp_dealloc, lent_free}, {0, NULL}};
PyType_Spec lent_spec = {.name = "nereid._core.Lent",
                         .basicsize = (int)sizeof(struct lent),
                         .flags = Py_TPFLAGS_DEFAULT,
                         .slots = lent_slots};

static bool answer_output_of(TRITONSERVER_InferenceResponse *response, uint32_t index,
                             struct answer_output *ret)
{
    const char *name;
    const int64_t *shape;
    const void *base;
    TRITONSERVER_MemoryType type;
    int64_t type_id;
    void *userp;
    TRITONSERVER_Error *e = TRITONSERVER_InferenceResponseOutput(
        response, index, &name, &ret->datatype, &shape, &ret->rank, &base, &ret->bytes, &type,
        &type_id, &userp);
    if (e) {
        TRITONSERVER_ErrorDelete(e);
        return false;
    }
    ret->name = strdup(name);
    ret->shape = malloc((ret->rank + 1) * sizeof *ret->shape);
    if (!ret->name || !ret->shape)
        return false;
    if (ret->rank)
        memcpy(ret->shape, shape, ret->rank * sizeof *ret->shape);
    ret->block = userp ? block_ref(userp) : NULL;
    ret->data = (void *)(uintptr_t)base;
    return true;
}

/* False without memory. */
static bool answer_fill(struct answer *a, TRITONSERVER_InferenceResponse *response)
{
    TRITONSERVER_Error *e = TRITONSERVER_InferenceResponseError(response);
    if (e) {
        a->code = TRITONSERVER_ErrorCode(e);
        a->message = strdup(TRITONSERVER_ErrorMessage(e));
        return a->message != NULL;
    }
    uint32_t count = 0;
    TRITONSERVER_ErrorDelete(TRITONSERVER_InferenceResponseOutputCount(response, &count));
    a->outputs = calloc(count + 1, sizeof *a->outputs);
    bool well = a->outputs != NULL;
    for (; well && a->count < count; a->count++) {
        well = answer_output_of(response, a->count, &a->outputs[a->count]);
        a->bytes += a->outputs[a->count].bytes;
    }
    return well;
}

struct answer *answer_of(TRITONSERVER_InferenceResponse *response)
{
    struct answer *a = calloc(1, sizeof *a);
    if (a && !answer_fill(a, response)) {
        answer_free(a);
        a = NULL;
    }
    TRITONSERVER_ErrorDelete(TRITONSERVER_InferenceResponseDelete(response));
    return a;
}

void answer_free(struct answer *a)
{
    if (!a)
        return;
    for (uint32_t i = 0; a->outputs && i < a->count; i++) {
        free(a->outputs[i].name);
        free(a->outputs[i].shape);
        block_unref(a->outputs[i].block);
    }
    free(a->outputs);
    free(a->message);
    free(a);
}

static PyObject *answer_array(const struct answer_output *o)
{
    struct lent *lent = (struct lent *)PyType_GenericAlloc(core.lent, 0);
    if (!lent)
        return NULL;
    lent->block = o->block ? block_ref(o->block) : NULL;
    PyObject *array =
        array_view((PyObject *)lent, o->datatype, o->shape, o->rank, o->data, o->bytes, true);
    Py_DECREF(lent);
    return array;
}

PyObject *answer_outputs(struct answer *a)
{
    if (a->message)
        return core_raise(a->code, a->message);
    PyObject *made = PyDict_New();
    for (uint32_t i = 0; made && i < a->count; i++) {
        PyObject *array = answer_array(&a->outputs[i]);
        if (!array || PyDict_SetItemString(made, a->outputs[i].name, array) != 0)
            Py_CLEAR(made);
        Py_XDECREF(array);
    }
    return made;
}
