/* TRITONBACKEND_ functions through which backends report statistics of single responses, and the
 * memory that they hold. */
#include "plugin/handle.h"
#include "base/mem.h"
#include "infer/buffer_attributes.h"
#include "infer/factory.h"
#include "infer/request.h"
#include "infer/response_stats.h"
#include "plugin/instance.h"
#include "plugin/model.h"
#include "plugin/usage.h"
#include "triton/core/tritonbackend.h"

#include <string.h>

#define RECORD_MAGIC 0x5253544du

static const char record_type[] = "TRITONBACKEND_ModelInstanceResponseStatistics";

/* The TRITONBACKEND_ModelInstanceResponseStatistics; everything except the times is borrowed. */
struct record {
    uint32_t magic;
    struct plugin_instance *instance;
    const void *factory; /* its handle */
    struct response_stats_times times;
    const struct err *error;
};

static struct record *record_of(TRITONBACKEND_ModelInstanceResponseStatistics *handle)
{
    struct record *r = (struct record *)handle;
    return r && r->magic == RECORD_MAGIC ? r : NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceResponseStatisticsNew(
    TRITONBACKEND_ModelInstanceResponseStatistics **response_statistics)
{
    struct record *r = MEM_NEW(struct record);
    r->magic = RECORD_MAGIC;
    *response_statistics = (TRITONBACKEND_ModelInstanceResponseStatistics *)r;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceResponseStatisticsDelete(
    TRITONBACKEND_ModelInstanceResponseStatistics *response_statistics)
{
    struct record *r = record_of(response_statistics);
    if (response_statistics && !r)
        return handle_invalid(record_type);
    if (r)
        r->magic = 0;
    mem_free(r);
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceResponseStatisticsSetModelInstance(
    TRITONBACKEND_ModelInstanceResponseStatistics *response_statistics,
    TRITONBACKEND_ModelInstance *model_instance)
{
    struct record *r = record_of(response_statistics);
    if (!r || !instance_is(model_instance))
        return handle_invalid(r ? "TRITONBACKEND_ModelInstance" : record_type);
    r->instance = instance_check(model_instance);
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseFactory(
    TRITONBACKEND_ModelInstanceResponseStatistics *response_statistics,
    TRITONBACKEND_ResponseFactory *response_factory)
{
    struct record *r = record_of(response_statistics);
    if (!r)
        return handle_invalid(record_type);
    struct request *request = factory_request(response_factory);
    if (!request)
        return HANDLE_BROKEN(TOKEN_FACTORY, response_factory);
    request_unref(request);
    r->factory = response_factory;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseStart(
    TRITONBACKEND_ModelInstanceResponseStatistics *response_statistics, uint64_t response_start)
{
    struct record *r = record_of(response_statistics);
    if (!r)
        return handle_invalid(record_type);
    r->times.start = response_start;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceResponseStatisticsSetComputeOutputStart(
    TRITONBACKEND_ModelInstanceResponseStatistics *response_statistics,
    uint64_t compute_output_start)
{
    struct record *r = record_of(response_statistics);
    if (!r)
        return handle_invalid(record_type);
    r->times.output_start = compute_output_start;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseEnd(
    TRITONBACKEND_ModelInstanceResponseStatistics *response_statistics, uint64_t response_end)
{
    struct record *r = record_of(response_statistics);
    if (!r)
        return handle_invalid(record_type);
    r->times.end = response_end;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceResponseStatisticsSetError(
    TRITONBACKEND_ModelInstanceResponseStatistics *response_statistics, TRITONSERVER_Error *error)
{
    struct record *r = record_of(response_statistics);
    if (!r)
        return handle_invalid(record_type);
    r->error = (const struct err *)error;
    return NULL;
}

static enum response_stats_outcome statistics_abi_outcome(const struct record *r)
{
    if (!r->error)
        return r->times.output_start ? RESPONSE_STATS_SUCCESS : RESPONSE_STATS_EMPTY;
    return err_code(r->error) == STATUS_CANCELLED ? RESPONSE_STATS_CANCEL : RESPONSE_STATS_FAIL;
}

static struct err *statistics_abi_add(const struct record *r, struct request *request)
{
    /* Relaxed, because only the number matters. */
    uint32_t index =
        atomic_fetch_add_explicit(&request->responses_reported, 1, memory_order_relaxed);
    if (r->instance->reports) {
        r->instance->reports->response(r->instance, request, index, statistics_abi_outcome(r),
                                       &r->times);
        return NULL;
    }
    return response_stats_add(stats_responses(r->instance->stats, true), index,
                              statistics_abi_outcome(r), &r->times);
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceReportResponseStatistics(
    TRITONBACKEND_ModelInstanceResponseStatistics *response_statistics)
{
    const struct record *r = record_of(response_statistics);
    if (!r)
        return handle_invalid(record_type);
    if (!r->instance || !r->factory)
        return handle_error(err_new(STATUS_INVALID_ARG,
                                    "statistics of a response need its %s before they are reported",
                                    r->instance ? "response factory" : "model instance"));
    struct request *request = factory_request(r->factory);
    if (!request)
        return HANDLE_BROKEN(TOKEN_FACTORY, r->factory);
    struct err *e = statistics_abi_add(r, request);
    request_unref(request);
    return handle_error(e);
}

static TRITONSERVER_Error *statistics_abi_report(const char *function, struct usage *u,
                                                 TRITONSERVER_BufferAttributes **usage,
                                                 uint32_t usage_size)
{
    if (!usage && usage_size)
        return handle_null(function, "usage");
    if (usage_size > USAGE_MAX_ROWS)
        return handle_error(
            err_new(STATUS_INVALID_ARG, "expected at most %u memory usages", USAGE_MAX_ROWS));
    struct usage_row rows[USAGE_MAX_ROWS];
    for (uint32_t i = 0; i < usage_size; i++) {
        const struct buffer_attributes *b = buffer_attributes_of(usage[i]);
        if (!b)
            return handle_invalid("TRITONSERVER_BufferAttributes");
        rows[i] = (struct usage_row){b->memory, b->device, b->byte_size};
    }
    return handle_error(usage_report(u, rows, usage_size));
}

TRITONSERVER_Error *TRITONBACKEND_ModelReportMemoryUsage(TRITONBACKEND_Model *model,
                                                         TRITONSERVER_BufferAttributes **usage,
                                                         uint32_t usage_size)
{
    if (!model_is(model))
        return handle_invalid("TRITONBACKEND_Model");
    return statistics_abi_report(__func__, &model_check(model)->usage, usage, usage_size);
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceReportMemoryUsage(TRITONBACKEND_ModelInstance *instance,
                                             TRITONSERVER_BufferAttributes **usage,
                                             uint32_t usage_size)
{
    if (!instance_is(instance))
        return handle_invalid("TRITONBACKEND_ModelInstance");
    return statistics_abi_report(__func__, &instance_check(instance)->usage, usage, usage_size);
}
