#pragma once
/* What the control plane tells, once for both protocols: protobuf-c messages of
 * grpc_service.proto. gRPC packs them, HTTP prints them as JSON (codec/pb_json). Each is freed
 * with protobuf_c_message_free_unpacked(&m->base, NULL). Called on a loop's thread with the
 * worker's view; never blocks. Version -1 = as the reference treats "no version given". */
#include "base/err.h"
#include "proto/grpc_service.pb-c.h"
#include "server/server.h"

struct model_config;

/* errors of the next: those of table_find */
struct err *describe_model(struct table_view *view, const char *name, size_t name_len,
                           int64_t version, Inference__ModelMetadataResponse **ret);
/* describe_config - ret: a reference, the caller's (config_unref). */
struct err *describe_config(struct table_view *view, const char *name, size_t name_len,
                            int64_t version, struct model_config **ret);

/* describe_model_ready - whether this version (-1: the latest) serves; what is not there does not.
 * errors  UNAVAILABLE when the start failed: table_refuses */
struct err *describe_model_ready(struct table_view *view, const char *name, size_t name_len,
                                 int64_t version, bool *ret);

/* describe_statistics - of one model, or of all when name_len is 0.
 * errors  INVALID_ARG "requested model 'x' is not available", "requested model version is not
 *         available for model 'x'" */
struct err *describe_statistics(struct table_view *view, const char *name, size_t name_len,
                                int64_t version, Inference__ModelStatisticsResponse **ret);

/* describe_index - every model of the repository; ready_only: only versions that serve. */
Inference__RepositoryIndexResponse *describe_index(struct table_view *view, bool ready_only);

/* describe_index_of - the same of some repositories: bits as repo_places gives them. */
Inference__RepositoryIndexResponse *describe_index_of(struct table_view *view, bool ready_only,
                                                      uint64_t places);

/* describe_metrics - the Prometheus page; mem_free it. */
char *describe_metrics(struct server *s, struct table_view *view, size_t *ret_len);

/* describe_parse_version - a version in a path or message: "" = -1; else digits > 0.
 * errors  INVALID_ARG in the reference's words (parity of "failed to get model version from
 *         specified version string ...") */
struct err *describe_parse_version(const char *text, size_t len, int64_t *ret);
