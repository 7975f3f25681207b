#include "isolate/isolate_request.h"

#include "base/mem.h"
#include "infer/on_host.h"
#include "infer/request.h"
#include "infer/response.h"
#include "isolate/isolate_answer.h"
#include "isolate/isolate_flight.h"
#include "isolate/wire/isolate_param.h"
#include "isolate/isolate_priv.h"
#include "isolate/isolate_session.h"

#include <inttypes.h>
#include <string.h>

#define ALIGN        64u
#define MOST_MESSAGE (ISOLATE_FRAME_MAX - (1u << 16))
#define COUNT_AT     sizeof(uint64_t) /* position of the number of requests: after the order */

static uint64_t align(uint64_t n)
{
    return (n + ALIGN - 1) & ~(uint64_t)(ALIGN - 1);
}

/* The bytes of all inputs, each aligned. The process gets them in memory of the host. */
static struct err *isolate_request_measure(const struct isolate_session *s, const struct request *r,
                                           uint64_t *ret)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < r->input_count; i++) {
        const struct tensor_input *in = &r->inputs[i];
        if (__builtin_add_overflow(sum, align(in->byte_size), &sum))
            return err_new(STATUS_INVALID_ARG, "%s: the inputs are too large", s->model);
    }
    *ret = sum;
    return NULL;
}

static void isolate_request_copy_pieces(void *to, const struct tensor_input *in)
{
    char *at = to;
    for (uint32_t k = 0; k < in->piece_count; k++) {
        if (in->pieces[k].size)
            memcpy(at, in->pieces[k].data, in->pieces[k].size);
        at += in->pieces[k].size;
    }
}

static void isolate_request_put_inputs(struct strbuf *sb, struct isolate_session *s,
                                       const struct request *r, uint64_t offset, bool shared)
{
    isolate_wire_put(sb, r->input_count);
    for (uint32_t i = 0; i < r->input_count; i++) {
        const struct tensor_input *in = &r->inputs[i];
        isolate_wire_put_text(sb, in->name);
        isolate_wire_put(sb, in->datatype);
        isolate_wire_put_bytes(sb, in->model_shape, in->model_rank * sizeof(*in->model_shape));
        isolate_wire_put(sb, in->ragged_ok);
        if (!in->piece_count) {
            isolate_wire_put(sb, PLACE_NONE);
        } else if (shared) {
            isolate_wire_put(sb, PLACE_SHARED);
            isolate_wire_put(sb, offset);
            isolate_wire_put(sb, in->byte_size);
            isolate_request_copy_pieces(s->in + offset, in);
            offset += align(in->byte_size);
        } else {
            isolate_wire_put(sb, PLACE_INLINE);
            isolate_request_copy_pieces(isolate_wire_put_room(sb, in->byte_size), in);
        }
    }
}

static void put_request(struct strbuf *sb, struct isolate_session *s, const struct request *r,
                        uint64_t id, uint64_t offset, bool shared)
{
    isolate_wire_put(sb, id);
    isolate_wire_put_text(sb, r->id);
    isolate_wire_put(sb, r->batch_size);
    isolate_wire_put(sb, r->flags);
    isolate_wire_put(sb, r->correlation_id);
    isolate_wire_put_text(sb, r->correlation_string);
    isolate_wire_put(sb, r->priority);
    isolate_wire_put(sb, r->timeout_us);
    isolate_param_put(sb, &r->params);
    isolate_request_put_inputs(sb, s, r, offset, shared);
    isolate_wire_put(sb, r->output_count);
    for (uint32_t i = 0; i < r->output_count; i++)
        isolate_wire_put_text(sb, r->outputs[i]);
}

/* Adds one request to the order. *ret_id is 0 if the process has ended; the caller then still
 * owns the request. */
static struct err *put_one(struct isolate_session *s, struct strbuf *sb, struct request *r,
                           time_ns now, uint64_t *ret_id)
{
    uint64_t bytes = 0;
    uint64_t offset = 0;
    size_t before = sb->len;
    struct err *e = on_host_inputs(r);
    if (!e)
        e = isolate_request_measure(s, r, &bytes);
    bool shared = bytes > ISOLATE_INLINE_BYTES;
    if (!e && shared)
        e = isolate_session_take(s, bytes, &offset);
    if (e)
        return e;
    *ret_id = isolate_flight_add(s, r, offset, shared ? bytes : 0, now);
    if (!*ret_id) {
        if (shared)
            isolate_session_give(s, offset, bytes);
        return err_new(STATUS_INTERNAL, "%s: its process ended before it had the request",
                       s->model);
    }
    put_request(sb, s, r, *ret_id, offset, shared);
    isolate_flight_launch(s, *ret_id);
    if (sb->len <= MOST_MESSAGE)
        return NULL;
    sb->len = before;
    e = err_new(STATUS_INVALID_ARG, "%s: the parameters of the request are too large", s->model);
    isolate_flight_fail(s, *ret_id, e);
    err_free(e);
    *ret_id = 0;
    return NULL;
}

size_t isolate_request_put(struct isolate_session *s, struct isolate_instance *inst,
                           struct isolate_lane *lane, struct request **requests, size_t count)
{
    if (count > inst->batch_cap) {
        inst->batch = mem_realloc(inst->batch, count * sizeof(*inst->batch));
        inst->batch_cap = count;
    }
    struct strbuf *sb = isolate_session_begin(lane, ORDER_EXECUTE);
    isolate_wire_put(sb, 0);
    time_ns now = clock_now_ns();
    uint64_t put = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t id = 0;
        struct err *e = put_one(s, sb, requests[i], now, &id);
        if (e) {
            isolate_answer_count_failure(s, requests[i], STATS_BACKEND);
            response_fail(requests[i], e);
        } else if (id) {
            inst->batch[put++] = id;
        }
    }
    memcpy(sb->data + COUNT_AT, &put, sizeof(put));
    return put;
}
