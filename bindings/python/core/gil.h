#pragma once
/* Python's lock on threads of the server. What Python keeps for a thread is made once: it costs
 * more than most functions. */
#include "core.h"

/* gil_take, gil_give - around what a thread that executes does with Python. */
PyGILState_STATE gil_take(void);
void gil_give(PyGILState_STATE state);
