/* A custom backend of an interface version that there is not. */
#include "triton/core/custom.h"

uint32_t CustomVersion(void)
{
    return 3;
}

int CustomInitialize(const CustomInitializeData *data, void **custom_context)
{
    (void)data;
    *custom_context = NULL;
    return 0;
}

int CustomFinalize(void *custom_context)
{
    (void)custom_context;
    return 0;
}

const char *CustomErrorString(void *custom_context, int errcode)
{
    (void)custom_context;
    (void)errcode;
    return NULL;
}
