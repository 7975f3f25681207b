#pragma once
/* What a server says of itself: its name, its version, the extensions that it has. */
#include "proto/grpc_service.pb-c.h"

struct server;

/* server_metadata_new - the caller's (protobuf_c_message_free_unpacked). */
Inference__ServerMetadataResponse *server_metadata_new(const struct server *s);
