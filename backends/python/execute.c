#include "execute.h"

#include <stdlib.h>
#include <string.h>

#include "common/berr.h"
#include "instance.h"
#include "nested.h"
#include "pack.h"
#include "respond.h"

/* What became of a request. */
struct fate {
    uint64_t handle;
    uint32_t release;
    TRITONSERVER_Error *refused; /* why the stub did not get it; NULL = it did */
};

/* The requests that the stub executes. */
struct batch {
    TRITONBACKEND_Request **requests;
    uint32_t count;
    uint32_t sent;      /* of them to the stub */
    struct fate *fates; /* count of them */
    bool done;          /* the stub has told */
    char *error;        /* what it told instead of responses; NULL = responses */
    int64_t rows;
    uint64_t begin_ns, compute_begin_ns, compute_end_ns;
    uint64_t mark;        /* of what was sent before it */
    uint64_t deadline_ns; /* 0 = none */
};

/* A batch that an event loop waits for, and room for what becomes of its requests. */
struct begun {
    struct batch batch;
    size_t room;
    struct fate fates[];
};

static void fate_forget(struct fate *fate)
{
    berr_drop(fate->refused);
    fate->refused = NULL;
}

static void execute_fail_one(TRITONBACKEND_Request *request, TRITONSERVER_Error *why)
{
    TRITONBACKEND_Response *response;
    TRITONSERVER_Error *err = TRITONBACKEND_ResponseNew(&response, request);
    if (err) {
        berr_log(err, "Failed to create a new response.");
        return;
    }
    berr_log(TRITONBACKEND_ResponseSend(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, why),
             "failed to send the response");
}

/* Answers the requests that the stub did not get and, with an error of the batch, all others that
 * have not had their final response.
 * why  NULL = the batch was executed */
static void execute_fail(struct host *host, struct batch *batch, TRITONSERVER_Error *why)
{
    for (uint32_t i = 0; i < batch->count; i++) {
        struct fate *fate = &batch->fates[i];
        struct handle *handle = handle_find(host, fate->handle);
        TRITONSERVER_Error *err = fate->refused ? fate->refused : why;
        if (!err)
            continue;
        if (!handle || !handle->closed)
            execute_fail_one(batch->requests[i], err);
        if (handle)
            handle_free(handle);
        fate->release = TRITONSERVER_REQUEST_RELEASE_ALL;
    }
}

/* A request was executed, and its record says what it got. */
static void execute_heard_one(struct host *host, struct wire_in *in, TRITONBACKEND_Request *request,
                              struct fate *fate)
{
    struct handle *handle = handle_find(host, fate->handle);
    uint32_t release = wire_u32(in);
    bool responds = wire_u32(in);
    if (in->bad || !handle)
        return;
    if (release == TRITONSERVER_REQUEST_RELEASE_RESCHEDULE) {
        if (handle->closed)
            berr_log(berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                              "'%s' gives back a request whose final response it has sent",
                              host->name),
                     "a request is released, not executed again");
        else
            fate->release = release;
    }
    TRITONBACKEND_Response *response = NULL;
    if (responds && !handle->closed) {
        TRITONSERVER_Error *err = TRITONBACKEND_ResponseNew(&response, request);
        berr_log(err, "Fail to create response");
        if (!response)
            in->bad = true;
    }
    if (response) {
        handle->closed = true;
        respond(host, in, response, TRITONSERVER_RESPONSE_COMPLETE_FINAL);
    } else if (responds) {
        in->bad = true; /* a second one: what follows cannot be read on */
    }
    if (handle->closed || release == TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)
        return;
    TRITONBACKEND_ResponseFactory *factory;
    berr_log(handle_factory(handle, &factory), "cannot make a response factory");
}

void execute_heard(struct host *host, struct heard *heard)
{
    struct batch *batch = host->batch;
    struct wire_in in = {.at = heard->data, .bytes = heard->bytes};
    if (!batch || batch->done)
        return;
    batch->done = true;
    batch->compute_end_ns = stub_now();
    if (!wire_u32(&in)) {
        batch->error = wire_said(&in);
        return;
    }
    bool fits = wire_count(&in) == batch->sent;
    for (uint32_t i = 0; fits && i < batch->count; i++)
        if (!batch->fates[i].refused)
            execute_heard_one(host, &in, batch->requests[i], &batch->fates[i]);
    if (in.bad || !fits)
        batch->error = strdup("the model's process sent what is no answer");
}

void execute_send(struct host *host, struct heard *heard)
{
    struct wire_in in = {.at = heard->data, .bytes = heard->bytes};
    struct handle *handle = handle_find(host, wire_u64(&in));
    uint32_t flags = wire_u32(&in);
    bool responds = wire_u32(&in);
    TRITONBACKEND_ResponseFactory *factory;
    TRITONBACKEND_Response *response;
    if (in.bad || !handle || handle->closed || flags > TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        return;
    TRITONSERVER_Error *err = handle_factory(handle, &factory);
    if (!err && !responds)
        err = TRITONBACKEND_ResponseFactorySendFlags(factory, flags);
    else if (!err)
        err = TRITONBACKEND_ResponseNewFromFactory(&response, factory);
    if (!err && responds)
        respond(host, &in, response, flags);
    berr_log(err, "failed to send the response");
    handle->closed = flags == TRITONSERVER_RESPONSE_COMPLETE_FINAL;
    if (handle->closed && !handle->request)
        handle_free(handle);
}

void execute_drop(struct host *host, uint64_t id)
{
    struct handle *handle = handle_find(host, id);
    if (handle && handle->request)
        handle->dropped = true;
    else if (handle)
        handle_free(handle);
}

static TRITONSERVER_Error *execute_rows(const struct host *host, struct batch *batch)
{
    for (uint32_t i = 0; i < batch->count; i++) {
        TRITONBACKEND_Input *input;
        const int64_t *shape;
        if (host->model->max_batch_size == 0) {
            batch->rows++;
            continue;
        }
        TRITONSERVER_Error *err = TRITONBACKEND_RequestInputByIndex(batch->requests[i], 0, &input);
        if (!err)
            err = TRITONBACKEND_InputProperties(input, NULL, NULL, &shape, NULL, NULL, NULL);
        if (err)
            return err;
        batch->rows += shape[0];
    }
    if (batch->rows > 1 && batch->rows > host->model->max_batch_size)
        return berr_new(TRITONSERVER_ERROR_INTERNAL,
                        "batch size %lld for '%s', max allowed is %lld", (long long)batch->rows,
                        host->name, (long long)host->model->max_batch_size);
    return NULL;
}

/* The stub does not get what was put in the places from one of them on. */
static void execute_give_back(struct host *host, struct wire_out *places, size_t from)
{
    for (size_t i = from; i < places->used; i += sizeof(uint64_t)) {
        uint64_t at;
        memcpy(&at, places->at + i, sizeof at);
        host_give(host, at);
    }
    places->used = from;
}

/* Writes a request; one that cannot be written is refused, and nothing of it is there.
 * errors  for the whole batch: no memory */
static TRITONSERVER_Error *execute_pack_one(struct host *host, struct batch *batch, uint32_t i,
                                            struct wire_out *out, struct wire_out *places)
{
    struct fate *fate = &batch->fates[i];
    size_t written = out->used, placed = places->used;
    fate->handle = handle_new(host, batch->requests[i]);
    if (!fate->handle)
        return berr_no_memory();
    TRITONSERVER_Error *err = pack_request(host, out, places, fate->handle, batch->requests[i]);
    if (out->failed || places->failed)
        return err;
    batch->sent += !err;
    fate->refused = err;
    if (err) {
        execute_give_back(host, places, placed);
        out->used = written;
    }
    return NULL;
}

/* Writes the requests and sends those that could be written. */
static TRITONSERVER_Error *execute_pack(struct host *host, struct batch *batch)
{
    struct wire_out out = {0}, places = {0};
    TRITONSERVER_Error *err = NULL;
    batch->sent = 0;
    wire_put_u32(&out, 0);
    for (uint32_t i = 0; i < batch->count && !err; i++)
        err = execute_pack_one(host, batch, i, &out, &places);
    if (!err)
        memcpy(out.at, &batch->sent, sizeof batch->sent); /* it is known now */
    batch->compute_begin_ns = stub_now();
    if (!err && batch->sent && !stub_send(host->stub, LINK_EXECUTE, 0, out.at, out.used))
        err = atomic_load(&host->stub->dead) ? host_unhealthy(host, STUB_DEAD) : berr_no_memory();
    if (err)
        execute_give_back(host, &places, 0);
    wire_fini(&out);
    wire_fini(&places);
    return err;
}

/* Gives the stub the batch; under stub_hold.
 * ret_sent  false: it did not, for an error, or because there is nothing in the batch, or nothing
 *           that could be sent */
static TRITONSERVER_Error *execute_submit(struct host *host, struct batch *batch, bool *ret_sent)
{
    uint64_t limit = host->model->execute_ns;
    host->batch = batch;
    batch->rows = 0;
    batch->mark = stub_mark(host->stub);
    TRITONSERVER_Error *err = execute_rows(host, batch);
    *ret_sent = !err && (batch->rows > 0 || host->model->max_batch_size == 0);
    if (*ret_sent)
        err = execute_pack(host, batch);
    *ret_sent = *ret_sent && !err && batch->sent;
    batch->deadline_ns = limit ? stub_now() + limit : 0;
    return err;
}

/* What the stub told of the batch. */
static TRITONSERVER_Error *execute_told(const struct batch *batch)
{
    return batch->error ? berr_new(TRITONSERVER_ERROR_INTERNAL, "%s", batch->error) : NULL;
}

/* Waits for the batch, and looks whether anybody else still does. Under stub_hold. */
static enum stub_wait execute_wait(struct host *host, struct batch *batch)
{
    static const uint64_t LOOK_NS = 100000000;
    for (;;) {
        uint64_t look_ns = stub_now() + LOOK_NS;
        bool is_last = batch->deadline_ns && batch->deadline_ns <= look_ns;
        enum stub_wait came =
            stub_wait(host->stub, &batch->done, is_last ? batch->deadline_ns : look_ns);
        if (came != STUB_LATE || is_last)
            return came;
        nested_cancel_unwanted(host);
    }
}

/* Waits for the batch; what the stub answered was sent when this returns. Under stub_hold. */
static TRITONSERVER_Error *execute_await(struct host *host, struct batch *batch, bool *ret_lost)
{
    enum stub_wait came = execute_wait(host, batch);
    *ret_lost = came != STUB_DONE;
    if (came != STUB_DONE) {
        if (came != STUB_DEAD) /* of its end by itself the log has a line */
            berr_log(host_unhealthy(host, came), "python");
        atomic_store(&host->stub->dead, true); /* also one that still runs, or that was stopped */
        stub_kill(host->stub);
        return host_unhealthy(host, came);
    }
    return execute_told(batch);
}

static void execute_report(const struct host *host, const struct batch *batch, bool well)
{
    uint64_t end = stub_now();
    uint64_t from = batch->compute_begin_ns ? batch->compute_begin_ns : batch->begin_ns;
    uint64_t to = batch->compute_end_ns ? batch->compute_end_ns : end;
    for (uint32_t i = 0; i < batch->count; i++)
        berr_log(TRITONBACKEND_ModelInstanceReportStatistics(host->instance, batch->requests[i],
                                                             well && !batch->fates[i].refused,
                                                             batch->begin_ns, from, to, end),
                 "failed reporting request statistics");
    if (batch->compute_end_ns)
        berr_log(TRITONBACKEND_ModelInstanceReportBatchStatistics(
                     host->instance, (uint64_t)batch->rows, batch->begin_ns, from, to, end),
                 "failed reporting batch request statistics");
}

static void execute_release(struct host *host, struct batch *batch)
{
    for (uint32_t i = 0; i < batch->count; i++) {
        struct fate *fate = &batch->fates[i];
        struct handle *handle = handle_find(host, fate->handle);
        bool again = fate->release == TRITONSERVER_REQUEST_RELEASE_RESCHEDULE;
        if (handle) {
            handle->request = NULL;
            if (handle->closed || handle->dropped || again)
                handle_free(handle);
        }
        fate_forget(fate);
        TRITONSERVER_Error *err = TRITONBACKEND_RequestRelease(batch->requests[i], fate->release);
        bool refused = err != NULL;
        berr_log(err, "Failed to release request");
        if (refused && again)
            berr_log(
                TRITONBACKEND_RequestRelease(batch->requests[i], TRITONSERVER_REQUEST_RELEASE_ALL),
                "Failed to release request");
    }
}

/* The same for a host without a stub. */
static void execute_refuse(struct host *host, struct batch *batch, TRITONSERVER_Error *why)
{
    execute_fail(host, batch, why);
    execute_report(host, batch, false);
    execute_release(host, batch);
    TRITONSERVER_ErrorDelete(why);
}

/* The batch is as it was before execute_submit. */
static void execute_withdraw(struct host *host, struct batch *batch)
{
    for (uint32_t i = 0; i < batch->count; i++) {
        struct handle *handle = handle_find(host, batch->fates[i].handle);
        if (handle)
            handle_free(handle);
        fate_forget(&batch->fates[i]);
    }
}

/* Ends the batch; under stub_hold.
 * err      owned by the callee; NULL = it was executed
 * again    there is another try, and the stub was lost
 * returns  false: it died before it had looked at the batch, which is as it was */
static bool execute_conclude(struct host *host, struct batch *batch, TRITONSERVER_Error *err,
                             bool again)
{
    bool untouched = again && !stub_was_read(host->stub, batch->mark);
    if (untouched) {
        execute_withdraw(host, batch);
    } else {
        execute_fail(host, batch, err);
        execute_report(host, batch, !err);
        execute_release(host, batch);
    }
    host->batch = NULL;
    berr_drop(err);
    return !untouched;
}

/* Executes the batch on the stub that is there.
 * sent     it was given to the stub already
 * again    there is another try
 * returns  as execute_conclude */
static bool execute_once(struct host *host, struct batch *batch, bool sent, bool again,
                         bool *ret_lost)
{
    TRITONSERVER_Error *err = NULL;
    stub_hold(host->stub);
    if (!sent)
        err = execute_submit(host, batch, &sent);
    if (sent)
        err = execute_await(host, batch, ret_lost);
    else
        *ret_lost = atomic_load(&host->stub->dead);
    bool done = execute_conclude(host, batch, err, again && *ret_lost);
    stub_let(host->stub);
    return done;
}

/* Executes the batch, for the second time on a new stub where the first had not looked at it. */
static void execute_to_the_end(struct host *host, struct batch *batch, bool sent)
{
    bool lost = false;
    bool done = sent && execute_once(host, batch, true, true, &lost);
    for (int tries = sent ? 1 : 2; !done; tries--) {
        TRITONSERVER_Error *err = instance_revive(host);
        done = err != NULL;
        if (err)
            execute_refuse(host, batch, err);
        else
            done = execute_once(host, batch, false, tries > 1, &lost);
    }
    if (lost)
        berr_log(instance_revive(host), "a model's process cannot be started again");
    free(batch->error);
    batch->error = NULL;
}

/* fates  room for `count` of them */
static void execute_prepare(struct batch *batch, TRITONBACKEND_Request **requests, uint32_t count,
                            struct fate *fates)
{
    *batch = (struct batch){
        .requests = requests, .count = count, .begin_ns = stub_now(), .fates = fates};
    for (uint32_t i = 0; i < count; i++)
        fates[i] = (struct fate){.release = TRITONSERVER_REQUEST_RELEASE_ALL};
}

void execute_requests(struct host *host, TRITONBACKEND_Request **requests, uint32_t count)
{
    struct batch batch;
    struct fate few[16], *fates = few;
    if (count > sizeof few / sizeof few[0])
        fates = calloc(count, sizeof *fates);
    if (!fates)
        abort(); /* a few bytes a request: there is no memory at all */
    execute_prepare(&batch, requests, count, fates);
    execute_to_the_end(host, &batch, false);
    if (fates != few)
        free(fates);
}

/* -- in halves, for an event loop -- */

static bool execute_room(struct host *host, uint32_t count)
{
    if (host->begun && host->begun->room >= count)
        return true;
    free(host->begun);
    host->begun = calloc(1, sizeof *host->begun + count * sizeof host->begun->fates[0]);
    if (host->begun)
        host->begun->room = count;
    return host->begun != NULL;
}

bool execute_begin(struct host *host, TRITONBACKEND_Request **requests, uint32_t count)
{
    bool sent;
    /* Inputs on a GPU are waited for. */
    if (host->lend || !host->stub || atomic_load(&host->stub->dead) || !execute_room(host, count) ||
        !stub_try_hold(host->stub))
        return false;
    struct batch *batch = &host->begun->batch;
    execute_prepare(batch, requests, count, host->begun->fates);
    TRITONSERVER_Error *err = execute_submit(host, batch, &sent);
    if (sent) {
        stub_turn_away(host->stub);
        return true;
    }
    execute_withdraw(host, batch);
    host->batch = NULL;
    stub_leave(host->stub);
    berr_drop(err);
    return false;
}

enum nereid_progress execute_look(struct host *host)
{
    struct batch *batch = &host->begun->batch;
    if (!stub_try_hold(host->stub))
        return NEREID_BLOCKS;
    enum stub_look came = stub_look(host->stub, &batch->done);
    if (came == STUB_LOOK_DONE) {
        execute_conclude(host, batch, execute_told(batch), false);
        stub_leave(host->stub);
        free(batch->error);
        batch->error = NULL;
        return NEREID_ENDED;
    }
    stub_part(host->stub);
    return came == STUB_LOOK_LONG ? NEREID_BLOCKS : NEREID_PENDING;
}

void execute_finish(struct host *host)
{
    execute_to_the_end(host, &host->begun->batch, true);
}

void execute_forget(struct host *host)
{
    free(host->begun);
}
