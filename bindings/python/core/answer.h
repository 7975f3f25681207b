#pragma once
/* One response of the server, taken out of it, so that nothing of the server is held by what the
 * program keeps. */
#include "core.h"

struct answer {
    struct answer *next;
    TRITONSERVER_Error_Code code;
    char *message; /* NULL = no error */
    struct answer_output *outputs;
    uint32_t count;
    size_t bytes; /* of all outputs */
};

/* answer_of - take what a response holds, and delete the response. Any thread, without the GIL.
 * returns  NULL without memory */
struct answer *answer_of(TRITONSERVER_InferenceResponse *response);
void answer_free(struct answer *a); /* NULL is fine */

/* answer_outputs - the outputs as a dict of arrays over their memory, which is not copied.
 * errors  NULL with an exception: that of the response, too */
PyObject *answer_outputs(struct answer *a);
