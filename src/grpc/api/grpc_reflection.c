#include "grpc/api/grpc_reflection.h"

#include "base/check.h"
#include "base/mem.h"
#include "grpc/api/descriptor_index.h"
#include "grpc/api/grpc_control.h"
#include "grpc/grpc_answer.h"
#include "grpc/grpc_conn.h"
#include "grpc/grpc_method.h"
#include "proto/descriptors.h"
#include "proto/reflection.pb-c.h"

#include <string.h>

#define MOST_SERVICES      16u
#define NAME_BYTES         128u
#define REQUEST_BYTES      ((size_t)4096)
#define WAITING_BYTES      ((uint64_t)1 << 20) /* answers that a client may leave unread */
#define REQUEST_CASE(name) GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_##name
#define ANSWER_CASE(name)  GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_##name

typedef Grpc__Reflection__V1__ServerReflectionRequest request_t;
typedef Grpc__Reflection__V1__ServerReflectionResponse response_t;

static void send_message(struct grpc_stream *s, const ProtobufCMessage *m)
{
    struct err *e = grpc_control_send(s, m);
    if (e)
        grpc_answer_fail(s, e);
}

static void grpc_reflection_answer_error(struct grpc_stream *s, response_t *out, int code,
                                         const char *message)
{
    Grpc__Reflection__V1__ErrorResponse error = GRPC__REFLECTION__V1__ERROR_RESPONSE__INIT;
    error.error_code = code;
    error.error_message = (char *)(uintptr_t)message;
    out->message_response_case = ANSWER_CASE(ERROR_RESPONSE);
    out->error_response = &error;
    send_message(s, &out->base);
}

/* Answers with a file and the files that it needs; file is -1 if there is none. */
static void answer_files(struct grpc_stream *s, response_t *out, const struct descriptor_index *x,
                         int file)
{
    if (file < 0) {
        grpc_reflection_answer_error(s, out, GRPC_ANSWER_NOT_FOUND, "not found");
        return;
    }
    ProtobufCBinaryData files[DESCRIPTOR_INDEX_FILES];
    uint32_t needs = descriptor_index_needs(x, (unsigned)file);
    Grpc__Reflection__V1__FileDescriptorResponse list =
        GRPC__REFLECTION__V1__FILE_DESCRIPTOR_RESPONSE__INIT;
    list.file_descriptor_proto = files;
    for (unsigned i = 0; i < x->count; i++)
        if (needs & 1u << i)
            files[list.n_file_descriptor_proto++] =
                (ProtobufCBinaryData){x->files[i].len, (uint8_t *)(uintptr_t)x->files[i].data};
    out->message_response_case = ANSWER_CASE(FILE_DESCRIPTOR_RESPONSE);
    out->file_descriptor_response = &list;
    send_message(s, &out->base);
}

static void answer_services(struct grpc_stream *s, response_t *out,
                            const struct descriptor_index *x)
{
    char names[MOST_SERVICES][NAME_BYTES];
    Grpc__Reflection__V1__ServiceResponse services[MOST_SERVICES];
    Grpc__Reflection__V1__ServiceResponse *pointers[MOST_SERVICES];
    Grpc__Reflection__V1__ListServiceResponse list =
        GRPC__REFLECTION__V1__LIST_SERVICE_RESPONSE__INIT;
    list.service = pointers;
    for (unsigned i = 0; i < MOST_SERVICES; i++) {
        if (!descriptor_index_service(x, i, names[i], NAME_BYTES))
            break;
        grpc__reflection__v1__service_response__init(&services[i]);
        services[i].name = names[i];
        pointers[list.n_service++] = &services[i];
    }
    out->message_response_case = ANSWER_CASE(LIST_SERVICES_RESPONSE);
    out->list_services_response = &list;
    send_message(s, &out->base);
}

/* Answers that there are no extensions: none of the messages can be extended. */
static void answer_extensions(struct grpc_stream *s, response_t *out,
                              const struct descriptor_index *x, char *type)
{
    if (descriptor_index_symbol(x, type) < 0) {
        grpc_reflection_answer_error(s, out, GRPC_ANSWER_NOT_FOUND, "not found");
        return;
    }
    Grpc__Reflection__V1__ExtensionNumberResponse none =
        GRPC__REFLECTION__V1__EXTENSION_NUMBER_RESPONSE__INIT;
    none.base_type_name = type;
    out->message_response_case = ANSWER_CASE(ALL_EXTENSION_NUMBERS_RESPONSE);
    out->all_extension_numbers_response = &none;
    send_message(s, &out->base);
}

static void grpc_reflection_answer(struct grpc_stream *s, request_t *in)
{
    response_t out = GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__INIT;
    struct descriptor_index x; /* only a few files, so the index is made again for each question */
    CHECK(descriptor_index_init(&x, descriptors_set, descriptors_bytes));
    out.valid_host = in->host;
    out.original_request = in;
    switch ((int)in->message_request_case) {
    case REQUEST_CASE(FILE_BY_FILENAME):
        answer_files(s, &out, &x, descriptor_index_file(&x, in->file_by_filename));
        break;
    case REQUEST_CASE(FILE_CONTAINING_SYMBOL):
        answer_files(s, &out, &x, descriptor_index_symbol(&x, in->file_containing_symbol));
        break;
    case REQUEST_CASE(FILE_CONTAINING_EXTENSION):
        grpc_reflection_answer_error(s, &out, GRPC_ANSWER_NOT_FOUND, "not found");
        break;
    case REQUEST_CASE(ALL_EXTENSION_NUMBERS_OF_TYPE):
        answer_extensions(s, &out, &x, in->all_extension_numbers_of_type);
        break;
    case REQUEST_CASE(LIST_SERVICES):
        answer_services(s, &out, &x);
        break;
    default:
        grpc_reflection_answer_error(s, &out, GRPC_ANSWER_UNIMPLEMENTED,
                                     "the request is not known");
        break;
    }
}

void grpc_reflection_message(struct grpc_stream *s, const uint8_t *data, size_t len,
                             struct buf **buf)
{
    (void)buf;
    if (len > REQUEST_BYTES || s->reply_bytes > WAITING_BYTES) {
        grpc_answer_end(s, GRPC_ANSWER_RESOURCE_EXHAUSTED,
                        len > REQUEST_BYTES ? "the request is larger than this method takes"
                                            : "the client does not take the answers");
        return;
    }
    request_t *in = (request_t *)grpc_control_unpack(
        s, &grpc__reflection__v1__server_reflection_request__descriptor, data, len);
    if (!in)
        return;
    grpc_reflection_answer(s, in);
    grpc__reflection__v1__server_reflection_request__free_unpacked(in, NULL);
}
