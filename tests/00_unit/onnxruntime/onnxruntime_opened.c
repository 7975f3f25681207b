#include "onnxruntime_opened.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

struct ort ort;

int open_onnxruntime(void **state)
{
    (void)state;
    void *library =
        dlopen(TEST_BINARY_DIR "/backends/onnxruntime/libonnxruntime.so.1", RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
    const OrtApiBase *(*get_base)(void);
    *(void **)&get_base = dlsym(library, "OrtGetApiBase");
    ort.api = get_base()->GetApi(ORT_API_VERSION);
    assert_non_null(ort.api);
    return 0;
}

void assert_says(TRITONSERVER_Error *err, TRITONSERVER_Error_Code code, const char *words)
{
    assert_non_null(err);
    if (!strstr(TRITONSERVER_ErrorMessage(err), words))
        fail_msg("'%s' is not in '%s'", words, TRITONSERVER_ErrorMessage(err));
    assert_int_equal(TRITONSERVER_ErrorCode(err), code);
    TRITONSERVER_ErrorDelete(err);
}
