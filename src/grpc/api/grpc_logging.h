#pragma once
/* The logging extension over gRPC: settings of the log, told and changed. */
#include "grpc/grpc_method.h"

/* grpc_logging_settings - the message function of LogSettings (grpc_method.h): changes the
 * settings that the request names, all or none, and tells all of them.
 * source  protocol/extension_logging.md, GRPC */
void grpc_logging_settings(struct grpc_stream *s, const uint8_t *data, size_t len,
                           struct buf **buf);
