#pragma once
/* The logging extension over gRPC: shows and changes log settings. */
#include "grpc/grpc_method.h"

/* grpc_logging_settings - the message function of LogSettings (grpc_method.h): changes all
 * settings that the request names, or none if one is invalid, and shows all.
 * source  protocol/extension_logging.md, GRPC */
void grpc_logging_settings(struct grpc_stream *s, const uint8_t *data, size_t len,
                           struct buf **buf);
