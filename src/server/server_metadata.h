#pragma once
/* The server's metadata: its name, its version, its extensions. */
#include "proto/grpc_service.pb-c.h"

struct server;

/* server_metadata_new - owned by the caller (protobuf_c_message_free_unpacked). */
Inference__ServerMetadataResponse *server_metadata_new(const struct server *s);
