#include "gil.h"

#include <pthread.h>

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* The thread ends: what Python keeps for it goes. An interpreter that ends has taken it already. */
static void gil_forget(void *unused)
{
    (void)unused;
    if (!Py_IsInitialized() || !PyGILState_GetThisThreadState())
        return;
    PyGILState_Ensure();
    PyGILState_Release(PyGILState_LOCKED);   /* gives back what Ensure counted, not the lock */
    PyGILState_Release(PyGILState_UNLOCKED); /* what gil_take kept; the lock goes with it */
}

static void gil_begin(void)
{
    pthread_key_create(&key, gil_forget);
}

PyGILState_STATE gil_take(void)
{
    pthread_once(&once, gil_begin);
    if (!PyGILState_GetThisThreadState()) {
        PyGILState_Ensure(); /* counted once more than released: Python keeps its state */
        pthread_setspecific(key, &key);
        PyEval_SaveThread();
    }
    return PyGILState_Ensure();
}

void gil_give(PyGILState_STATE state)
{
    PyGILState_Release(state);
}
