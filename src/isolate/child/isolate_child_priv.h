#pragma once
/* The objects of the child's side. Private to isolate/. */
#include "base/list.h"
#include "base/strbuf.h"
#include "infer/allocator.h"
#include "infer/request.h"
#include "os/loop.h"
#include "os/mutex.h"
#include "plugin/backend.h"
#include "isolate/wire/isolate_frame.h"
#include "isolate/wire/isolate_message.h"
#include "isolate/wire/isolate_wire.h"

struct isolate_child_request;
struct model_config;
struct plugin_instance;
struct stats;
struct usage;

/* A large output: its place in shared memory, and the slot through which the parent gives it
 * back. */
struct isolate_child_slot {
    uint64_t offset;
    enum { SLOT_FREE, SLOT_OURS, SLOT_LENT } state; /* LENT: the parent has it */
};

struct isolate_child_outputs {
    struct mutex lock; /* rank POOL; guards slots and most */
    struct isolate_child_slot slots[ISOLATE_SLOTS];
    uint32_t most; /* all slots from this one on are free */
    uint8_t *shared;
    int fd;
    struct isolate_pool *pool;
    struct allocator allocator;
};

/* A thread that takes orders. */
struct isolate_child_lane {
    struct list node;
    struct isolate_child *child;
    int fd;
    struct thread *thread;
    struct isolate_frame frame;
    struct strbuf out; /* records for the next message */
    struct plugin_instance *instance;
    bool keeps; /* it has executed, and has not given back yet what that left in the heap */
    struct request **batch;
    size_t batch_cap;
};

struct isolate_child {
    int control_fd;
    struct mutex control_lock; /* rank THREAD; guards sending on the control socket */
    struct loop *loop;
    struct loop_fd control;
    struct loop_timer trim;
    struct mail trim_mail;
    struct loop_timer sweep;
    atomic_bool trimming; /* the loop trims by itself; relaxed except for the exchange */
    struct isolate_frame frame;
    uint8_t *in;
    uint64_t shared_bytes;
    struct isolate_child_outputs outputs;
    struct isolate_child_lane setup;

    struct mutex lock; /* rank SCHEDULER; guards lanes and requests */
    struct list lanes;
    struct isolate_child_request **requests; /* indexed by the lower half of their number */
    uint32_t request_cap;

    /* Used by the setup lane's thread only. */
    struct backend_registry registry;
    struct strbuf strings; /* strings that the registry borrows */
    struct backend_setting *settings;
    struct plugin_backend *backend;
    char *name;
    char *model_dir;
    int64_t version;
    struct plugin_model *model;
    struct model_config *published;
    struct stats *stats;
    atomic_bool ended; /* the parent told the child to end */
    /* a restriction cannot be enforced, so nothing is loaded. The answer to the first order */
    struct err *refused;
};

/* A request in the child process. */
struct isolate_child_request {
    struct request_target target; /* first member; what the request is sent to */
    struct isolate_child *child;
    uint64_t id;
    /* place of the next record about it; relaxed, because only the number matters */
    atomic_uint_least64_t place;
    struct request *request;
};

/* isolate_child_lane_say - begin a record. On a lane's thread it goes with the lane's next
 * message, else at once.
 * local  empty; used on other threads
 * cr     the request that it is about; NULL = none
 * isolate_child_lane_said - the record is complete.
 * now    send it without waiting for the end of the order */
struct strbuf *isolate_child_lane_say(struct strbuf *local, struct isolate_child_request *cr,
                                      enum isolate_record kind, size_t *ret_mark);
void isolate_child_lane_said(struct isolate_child *child, struct strbuf *sb, size_t mark, bool now);

/* isolate_child_lane_run - the main function of a lane's thread: takes orders until the lane
 * ends. */
void isolate_child_lane_run(void *lane);
void isolate_child_lane_init(struct isolate_child_lane *lane, struct isolate_child *child, int fd);
void isolate_child_lane_fini(struct isolate_child_lane *lane);

/* isolate_child_setup_order - execute an order on the setup lane; returns the error for the
 * parent. */
struct err *isolate_child_setup_order(struct isolate_child *child, uint64_t order,
                                      struct isolate_wire *w, const int *fds);

/* isolate_child_lane_put_usage - write a record with the memory that a model or instance reports
 * to hold. */
void isolate_child_lane_put_usage(struct isolate_child *child, struct usage *usage);

/* isolate_child_request_read - read the next request of an order. NULL: the order is invalid. */
struct request *isolate_child_request_read(struct isolate_child *child, struct isolate_wire *w);

/* isolate_child_request_cancel - nobody waits for the request any more. A number that is not
 * known is ignored. */
void isolate_child_request_cancel(struct isolate_child *child, uint64_t id);

/* Sends the reports of instances to the parent. */
extern const struct instance_reports isolate_child_request_reports;

/* isolate_child_outputs_init - set up memory for outputs: small ones on the heap, large ones in
 * shared memory. */
void isolate_child_outputs_init(struct isolate_child_outputs *o, int fd, uint8_t *shared,
                                uint64_t bytes, uint64_t limit);
void isolate_child_outputs_fini(struct isolate_child_outputs *o);

/* isolate_child_outputs_put - write where an output is. If it is in shared memory, it belongs to
 * the parent from here on. */
void isolate_child_outputs_put(struct isolate_child_outputs *o, struct strbuf *sb,
                               const struct tensor_output *output);

/* isolate_child_outputs_trim - take back outputs that the parent no longer uses, and give idle
 * memory to the system. Returns true if there is more to do later. */
bool isolate_child_outputs_trim(struct isolate_child_outputs *o);

/* isolate_child_watch_outputs - a large output was made, so trim from now on. */
void isolate_child_watch_outputs(struct isolate_child *child);

/* isolate_child_confine - apply the restrictions that the parent asks for; they also hold for
 * everything loaded later. Call it while there is only one thread.
 * ret_confined  true if something is denied
 * errors  UNSUPPORTED, naming the parameter: the system cannot enforce it, so no backend may be
 *         loaded */
struct err *isolate_child_confine(struct isolate_wire *w, bool *ret_confined);
