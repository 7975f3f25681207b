/* The ABI's versions, errors, datatype names, messages and log: TRITONSERVER_ functions that
 * need no server. */
#include "plugin/handle.h"
#include "base/log.h"
#include "base/mem.h"
#include "model/datatype.h"
#include "plugin/message.h"

#include <string.h>

TRITONSERVER_Error *TRITONSERVER_ApiVersion(uint32_t *major, uint32_t *minor)
{
    *major = TRITONSERVER_API_VERSION_MAJOR;
    *minor = TRITONSERVER_API_VERSION_MINOR;
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_ErrorNew(TRITONSERVER_Error_Code code, const char *msg)
{
    return handle_error(err_new((enum status)code, "%s", msg ? msg : ""));
}

void TRITONSERVER_ErrorDelete(TRITONSERVER_Error *error)
{
    if (!err_is_lent((struct err *)error))
        err_free((struct err *)error);
}

TRITONSERVER_Error_Code TRITONSERVER_ErrorCode(TRITONSERVER_Error *error)
{
    return (TRITONSERVER_Error_Code)err_code((struct err *)error);
}

const char *TRITONSERVER_ErrorCodeString(TRITONSERVER_Error *error)
{
    return status_text(err_code((struct err *)error));
}

const char *TRITONSERVER_ErrorMessage(TRITONSERVER_Error *error)
{
    return err_message((struct err *)error);
}

const char *TRITONSERVER_DataTypeString(TRITONSERVER_DataType datatype)
{
    return datatype_name((enum datatype)datatype);
}

TRITONSERVER_DataType TRITONSERVER_StringToDataType(const char *dtype)
{
    return dtype ? (TRITONSERVER_DataType)datatype_parse(dtype, strlen(dtype))
                 : TRITONSERVER_TYPE_INVALID;
}

uint32_t TRITONSERVER_DataTypeByteSize(TRITONSERVER_DataType datatype)
{
    return datatype_bytes((enum datatype)datatype);
}

const char *TRITONSERVER_MemoryTypeString(TRITONSERVER_MemoryType memtype)
{
    switch (memtype) {
    case TRITONSERVER_MEMORY_CPU:
        return "CPU";
    case TRITONSERVER_MEMORY_CPU_PINNED:
        return "CPU_PINNED";
    case TRITONSERVER_MEMORY_GPU:
        return "GPU";
    }
    return "<invalid>";
}

const char *TRITONSERVER_InstanceGroupKindString(TRITONSERVER_InstanceGroupKind kind)
{
    switch (kind) {
    case TRITONSERVER_INSTANCEGROUPKIND_AUTO:
        return "AUTO";
    case TRITONSERVER_INSTANCEGROUPKIND_CPU:
        return "CPU";
    case TRITONSERVER_INSTANCEGROUPKIND_GPU:
        return "GPU";
    case TRITONSERVER_INSTANCEGROUPKIND_MODEL:
        return "MODEL";
    }
    return "<invalid>";
}

bool TRITONSERVER_LogIsEnabled(TRITONSERVER_LogLevel level)
{
    return log_enabled((enum log_level)level);
}

TRITONSERVER_Error *TRITONSERVER_LogMessage(TRITONSERVER_LogLevel level, const char *filename,
                                            const int line, const char *msg)
{
    /* One site for all plug-ins, so the rate limit holds for all of their lines together. */
    static struct log_site site;
    if ((unsigned)level > TRITONSERVER_LOG_VERBOSE)
        return handle_error(
            err_new(STATUS_INVALID_ARG, "TRITONSERVER_LogMessage: unknown level %d", (int)level));
    if (log_enabled((enum log_level)level))
        log_line(&site, (enum log_level)level, filename ? filename : "", line, "%s",
                 msg ? msg : "");
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_MessageNewFromSerializedJson(TRITONSERVER_Message **message,
                                                              const char *base, size_t byte_size)
{
    if (!base)
        return HANDLE_NULL("base");
    struct message *m;
    struct err *e = message_read(base, byte_size, &m);
    if (!e)
        *message = (TRITONSERVER_Message *)m;
    return handle_error(e);
}

TRITONSERVER_Error *TRITONSERVER_MessageDelete(TRITONSERVER_Message *message)
{
    struct message *m = message_of(message);
    if (message && !m)
        return handle_invalid("TRITONSERVER_Message");
    message_free(m);
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_MessageSerializeToJson(TRITONSERVER_Message *message,
                                                        const char **base, size_t *byte_size)
{
    const struct message *m = message_of(message);
    if (!m)
        return handle_invalid("TRITONSERVER_Message");
    *base = m->json;
    *byte_size = m->len;
    return NULL;
}
