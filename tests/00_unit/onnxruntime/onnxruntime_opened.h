#pragma once
/* The ONNX Runtime that lies beside its backend, for tests of what the backend asks of it. */
#include "onnxruntime/ort.h"

extern struct ort ort; /* has its functions after open_onnxruntime */

/* open_onnxruntime - a group's setup. */
int open_onnxruntime(void **state);

/* assert_says - an error has this code, and these words among others. Frees it. */
void assert_says(TRITONSERVER_Error *err, TRITONSERVER_Error_Code code, const char *words);
