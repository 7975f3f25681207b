#include "inbox.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct inbox {
    atomic_uint refs;     /* acquire and release: the last one frees */
    int fd;               /* an eventfd */
    pthread_mutex_t lock; /* guards what follows */
    uint64_t *numbers;
    size_t count, room;
};

struct inbox_object {
    PyObject_HEAD struct inbox *inbox;
};

struct inbox *inbox_ref(struct inbox *i)
{
    atomic_fetch_add_explicit(&i->refs, 1, memory_order_relaxed);
    return i;
}

void inbox_unref(struct inbox *i)
{
    if (!i || atomic_fetch_sub_explicit(&i->refs, 1, memory_order_acq_rel) != 1)
        return;
    close(i->fd);
    pthread_mutex_destroy(&i->lock);
    free(i->numbers);
    free(i);
}

/* Without memory the number is lost; the descriptor wakes the loop all the same, and who asks then
 * sees every call that has news. */
void inbox_post(struct inbox *i, uint64_t number)
{
    pthread_mutex_lock(&i->lock);
    bool first = i->count == 0;
    if (i->count == i->room) {
        size_t room = i->room ? 2 * i->room : 16;
        uint64_t *grown = realloc(i->numbers, room * sizeof *grown);
        if (grown) {
            i->numbers = grown;
            i->room = room;
        }
    }
    if (i->count < i->room)
        i->numbers[i->count++] = number;
    pthread_mutex_unlock(&i->lock);
    uint64_t one = 1;
    if (first && write(i->fd, &one, sizeof one) < 0)
        return; /* full: it is readable */
}

struct inbox *inbox_object_of(PyObject *object)
{
    return ((struct inbox_object *)object)->inbox;
}

static PyObject *inbox_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    (void)args, (void)keywords;
    struct inbox_object *o = (struct inbox_object *)PyType_GenericAlloc(type, 0);
    struct inbox *i = o ? calloc(1, sizeof *i) : NULL;
    if (!i) {
        Py_XDECREF(o);
        return PyErr_NoMemory();
    }
    atomic_init(&i->refs, 1);
    pthread_mutex_init(&i->lock, NULL);
    i->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    o->inbox = i;
    if (i->fd < 0) {
        Py_DECREF(o);
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    return (PyObject *)o;
}

static void inbox_object_free(PyObject *self)
{
    inbox_unref(inbox_object_of(self));
    types_free(self);
}

static PyObject *inbox_fileno(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyLong_FromLong(inbox_object_of(self)->fd);
}

/* take() - the numbers of calls with news, and the descriptor is not readable any more. */
static PyObject *inbox_take(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct inbox *i = inbox_object_of(self);
    uint64_t waiting;
    if (read(i->fd, &waiting, sizeof waiting) < 0)
        waiting = 0; /* nothing has come */
    pthread_mutex_lock(&i->lock);
    uint64_t *numbers = i->numbers;
    size_t count = i->count;
    i->numbers = NULL;
    i->count = i->room = 0;
    pthread_mutex_unlock(&i->lock);
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t k = 0; list && k < count; k++)
        if (PyList_SetItem(list, (Py_ssize_t)k, PyLong_FromUnsignedLongLong(numbers[k])) != 0)
            Py_CLEAR(list);
    free(numbers);
    return list;
}

static PyMethodDef inbox_methods[] = {{"fileno", inbox_fileno, METH_NOARGS, NULL},
                                      {"take", inbox_take, METH_NOARGS, NULL},
                                      {NULL, NULL, 0, NULL}};
static PyType_Slot inbox_slots[] = {{Py_tp_new, inbox_new},
                                    {Py_tp_dealloc, inbox_object_free},
                                    {Py_tp_methods, inbox_methods},
                                    {0, NULL}};
PyType_Spec inbox_spec = {.name = "nereid._core.Inbox",
                          .basicsize = (int)sizeof(struct inbox_object),
                          .flags = Py_TPFLAGS_DEFAULT,
                          .slots = inbox_slots};
