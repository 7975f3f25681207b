#pragma once
/* The information that both protocols show about models and the server, as protobuf-c messages
 * of grpc_service.proto. gRPC packs them, HTTP prints them as JSON (codec/pb_json). Free each
 * with protobuf_c_message_free_unpacked(&m->base, NULL). Call these on a loop's thread with the
 * worker's view; they never block. Version -1 = what the reference does without a version. */
#include "base/err.h"
#include "proto/grpc_service.pb-c.h"
#include "server/server.h"

struct model_config;

/* describe_model - metadata of a model. Errors: those of table_find. */
struct err *describe_model(struct table_view *view, const char *name, size_t name_len,
                           int64_t version, Inference__ModelMetadataResponse **ret);
/* describe_config - the configuration. ret: a reference of the caller's (config_unref). Errors:
 * those of table_find. */
struct err *describe_config(struct table_view *view, const char *name, size_t name_len,
                            int64_t version, struct model_config **ret);

/* describe_model_ready - true if this version (-1: the latest) serves; false if it does not
 * exist.
 * errors  UNAVAILABLE if the start failed: table_refuses */
struct err *describe_model_ready(struct table_view *view, const char *name, size_t name_len,
                                 int64_t version, bool *ret);

/* describe_statistics - statistics of one model, or of all if name_len is 0.
 * errors  INVALID_ARG "requested model 'x' is not available", "requested model version is not
 *         available for model 'x'" */
struct err *describe_statistics(struct table_view *view, const char *name, size_t name_len,
                                int64_t version, Inference__ModelStatisticsResponse **ret);

/* describe_index - every model of the repositories; ready_only: only versions that serve. */
Inference__RepositoryIndexResponse *describe_index(struct table_view *view, bool ready_only);

/* describe_index_of - the same for some repositories: the bits of repo_places. */
Inference__RepositoryIndexResponse *describe_index_of(struct table_view *view, bool ready_only,
                                                      uint64_t places);

/* describe_metrics - the Prometheus page; free it with mem_free. */
char *describe_metrics(struct server *s, struct table_view *view, size_t *ret_len);

/* describe_parse_version - parse a version in a path or message: "" = -1; else digits > 0.
 * errors  INVALID_ARG in the reference's words ("failed to get model version from specified
 *         version string ...") */
struct err *describe_parse_version(const char *text, size_t len, int64_t *ret);
