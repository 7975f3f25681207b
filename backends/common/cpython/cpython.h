#pragma once
/* Python's C interface as every CPython from 3.9 has it. */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x03090000
#include <Python.h>
