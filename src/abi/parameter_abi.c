/* TRITONSERVER_Parameter functions. */
#include "plugin/handle.h"
#include "abi/parameter.h"

const char *TRITONSERVER_ParameterTypeString(TRITONSERVER_ParameterType paramtype)
{
    switch (paramtype) {
    case TRITONSERVER_PARAMETER_STRING:
        return "STRING";
    case TRITONSERVER_PARAMETER_INT:
        return "INT";
    case TRITONSERVER_PARAMETER_BOOL:
        return "BOOL";
    case TRITONSERVER_PARAMETER_DOUBLE:
        return "DOUBLE";
    case TRITONSERVER_PARAMETER_BYTES:
        return "BYTES";
    }
    return "<invalid>";
}

TRITONSERVER_Parameter *TRITONSERVER_ParameterNew(const char *name,
                                                  const TRITONSERVER_ParameterType type,
                                                  const void *value)
{
    if (!name || !value)
        return NULL;
    return (TRITONSERVER_Parameter *)parameter_new(name, (enum param_type)type, value);
}

TRITONSERVER_Parameter *TRITONSERVER_ParameterBytesNew(const char *name, const void *byte_ptr,
                                                       const uint64_t size)
{
    if (!name || (!byte_ptr && size))
        return NULL;
    return (TRITONSERVER_Parameter *)parameter_new_bytes(name, byte_ptr, size);
}

void TRITONSERVER_ParameterDelete(TRITONSERVER_Parameter *parameter)
{
    parameter_free((struct parameter *)(uintptr_t)parameter_of(parameter));
}
