#include "shell/backend.h"

#include "base/check.h"
#include "base/mem.h"
#include "infer/response.h"
#include "model/config.h"
#include "os/mutex.h"
#include "os/thread.h"
#include "plugin/instance.h"
#include "shell/steps.h"

#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define MOST_LATER  256u
#define LARGE_BYTES 8192u

/* A request that is answered after Execute has returned, by a thread of the backend's. */
struct later {
    struct request *request; /* NULL = it was released with Execute */
    struct response *response;
    struct ask *ask; /* NULL: nobody's, or a step's */
    struct served *served;
    struct post *rings; /* its bell, and nothing else */
    time_ns due;
};

static struct mutex lock = MUTEX_INIT(MUTEX_RANK_LEAF); /* guards what follows */
static struct mutex_cond changed;
static struct later left[MOST_LATER];
static unsigned left_count;
static bool stopping;
static struct thread *thread;

/* -- what has to be true of an execution -- */

/* The ask that a request is, or whose step it is; NULL: a gap's, or a warm-up's. */
static struct ask *ask_of(const struct request *r)
{
    while (r->parent)
        r = r->parent;
    return r->respond == world_on_answer ? r->owner : NULL;
}

/* That, of no step. */
static struct ask *own_ask_of(const struct request *r)
{
    return r->parent ? NULL : ask_of(r);
}

static int32_t input_of(const struct request *r, const char *name, int32_t otherwise)
{
    int32_t value = otherwise;
    for (uint32_t i = 0; i < r->input_count; i++)
        if (strcmp(r->inputs[i].name, name) == 0)
            memcpy(&value, r->inputs[i].pieces[0].data, sizeof(value));
    return value;
}

/* Requests of a sequence run in the order in which their client handed them over. */
static void check_order(const struct ask *a)
{
    for (unsigned i = 0; i < ask_count && a->sequence && !a->alone && !a->executions; i++) {
        const struct ask *b = &asks[i];
        if (b->served == a->served && b->sequence == a->sequence && b->starts == a->starts &&
            b->executions && b->ordinal > a->ordinal)
            steps_fail("request %d of sequence %ld runs after %d, which came later", a->id,
                       (long)a->sequence, b->id);
    }
}

static void check_ask(const struct ask *a, const struct request *r)
{
    if (a->answered)
        steps_fail("request %d is executed after its final answer", a->id);
    if (input_of(r, "i", 0) != a->id)
        steps_fail("request %d is executed with the data of %d", a->id, input_of(r, "i", 0));
    if (input_of(r, "ready", 1) != 1)
        steps_fail("request %d is not ready", a->id);
    if (r->parent)
        return;
    if (a->at || a->released)
        steps_fail("request %d is executed %s", a->id, a->at ? "twice at a time" : "when released");
    check_order(a);
}

/* A loop that executes a model itself withholds answers: what others queue meanwhile waits for
 * no more than 50 us of that. */
static void check_turn(const struct sim_loop *l, struct request *const *rows, uint32_t count)
{
    time_ns end = l->inline_since + TIME_US(50) + 20 * (time_ns)steps_mood()->jitter_ns;
    bool all_later = steps_now() > end;
    for (uint32_t i = 0; i < count; i++)
        all_later = all_later && rows[i]->times.queue_start > end;
    if (all_later)
        steps_fail("loop %u withholds answers and runs what others queued", l->index);
}

/* Whether answers wait that this loop has to deliver. Not where one of its clients is gone: its
 * request may be found in the queue only when the next one is taken. */
static bool withholds(const struct sim_loop *l)
{
    bool waits = false;
    for (unsigned i = 0; i < ask_count; i++) {
        const struct ask *a = &asks[i];
        if (a->home != l || !a->accepted || a->answered || a->model->ordered)
            continue;
        if (a->cancelled)
            return false;
        waits = waits || (a->sent && a->sender && a->sender_thread == steps_self());
    }
    return waits;
}

static void enter_loop(struct request *const *rows, uint32_t count)
{
    const struct loop *here = loop_current();
    struct sim_loop *l = loops;
    if (!here)
        return;
    while (l->loop != here)
        l++;
    if (withholds(l))
        check_turn(l, rows, count);
    else
        l->inline_since = steps_now();
    world_counts.inline_runs++;
}

static void begin_row(struct post *p, struct request *r)
{
    struct ask *root = ask_of(r);
    struct ask *a = own_ask_of(r);
    world_counts.gaps += r->gap;
    world_counts.warm += !root && !r->gap;
    world_counts.steps += r->parent != NULL;
    if (r->gap && input_of(r, "ready", 0) != 0)
        steps_fail("a row that no request fills is ready");
    if (root) {
        root->inside++;
        check_ask(root, r);
        steps_note("executes", root->id, (long)p->run);
    }
    if (!a)
        return;
    p->served->held++;
    a->executions++;
    a->at = p;
}

/* -- what becomes of a row -- */

static struct response *make(struct request *r, bool large)
{
    int32_t value = input_of(r, "i", 0);
    uint64_t size = large ? LARGE_BYTES : sizeof(value);
    const int64_t shape[] = {1, (int64_t)(size / sizeof(value))};
    bool batched = r->config->max_batch_size > 0;
    struct response *x = response_new(r);
    struct tensor_output *o =
        response_add_output(x, "o", DATATYPE_INT32, shape + !batched, 1 + batched);
    struct err *e = response_output_buffer(x, o, size);
    CHECK(!e);
    memcpy(o->data, &value, sizeof(value));
    return x;
}

static void note_sent(struct ask *a, struct post *p, bool fails)
{
    if (!a)
        return;
    a->failing = a->failing || fails;
    a->sent = true;
    a->sender = p;
    a->sender_run = p ? p->run : 0;
    a->sender_thread = steps_self();
}

/* The backend has it no more. */
static void let_go(struct served *s, struct ask *a)
{
    s->last_event = steps_now();
    if (!a)
        return;
    a->at = NULL;
    s->held--;
}

static struct err *error_or_not(struct request *r)
{
    struct ask *root = ask_of(r);
    if (!steps_one_in(root ? 15 : 60))
        return NULL;
    if (root)
        root->failing = true;
    return err_new(STATUS_INTERNAL, "the backend says so");
}

static void send_final(struct request *r, struct response *x, struct ask *a, struct post *p,
                       struct served *s)
{
    struct err *e = error_or_not(r);
    note_sent(a, p, e != NULL);
    if (steps_one_in(2)) {
        let_go(s, a);
        request_release(r);
        response_send(x, RESPONSE_FINAL, e);
        return;
    }
    response_send(x, RESPONSE_FINAL, e);
    let_go(s, a);
    request_release(r);
}

/* Answers later; false: the thread has enough to do. */
static bool leave_for_later(struct request *r, struct response *x, struct ask *a, struct served *s)
{
    static const time_ns spans[] = {0, TIME_US(20), TIME_MS(3), TIME_MS(700)};
    bool keep = steps_one_in(2);
    struct ask *root = ask_of(r);
    mutex_lock(&lock);
    bool room = left_count < MOST_LATER;
    if (room && root)
        root->inside++;
    if (room) {
        left[left_count++] = (struct later){.request = keep ? r : NULL,
                                            .response = x,
                                            .ask = a,
                                            .served = s,
                                            .due = steps_now() + spans[steps_pick(4)]};
        s->held += a && !keep; /* until it is answered */
        mutex_cond_signal(&changed);
    }
    mutex_unlock(&lock);
    if (room && !keep) {
        let_go(s, a);
        request_release(r);
    } else if (room && a) {
        a->at = NULL;
    }
    world_counts.later += room;
    return room;
}

static void send_some(struct request *r)
{
    for (unsigned n = steps_pick(4); n; n--) {
        response_send(make(r, false), 0, NULL);
        if (steps_one_in(3))
            steps_busy(TIME_US(5));
    }
}

static bool wants_again(const struct request *r, const struct ask *a)
{
    return r->target->again && (!a || a->again < 4) && steps_one_in(2);
}

static void finish_row(struct post *p, struct request *r)
{
    struct served *s = p->served;
    struct ask *a = own_ask_of(r);
    struct ask *root = ask_of(r);
    if (r->config->decoupled)
        send_some(r);
    if (wants_again(r, a)) {
        let_go(s, a);
        if (a)
            a->again++;
        world_counts.again++;
        request_reschedule(r);
        return;
    }
    if (root && steps_one_in(40)) { /* forgets to answer */
        root->failing = true;
        note_sent(a, p, true);
        let_go(s, a);
        request_release(r);
        return;
    }
    struct response *x = make(r, a && a->large);
    if (!steps_one_in(6) || !leave_for_later(r, x, a, s))
        send_final(r, x, a, p, s);
}

/* -- an execution -- */

static void spend_time(void)
{
    static const time_ns spans[] = {
        0, 0, 0, 0, TIME_US(3), TIME_US(30), TIME_US(200), TIME_MS(2), TIME_MS(40), TIME_S(3)};
    steps_busy(spans[steps_pick(sizeof(spans) / sizeof(spans[0]))]);
}

static TRITONSERVER_Error *refuse(struct request *const *rows, uint32_t count, struct served *s)
{
    for (uint32_t i = 0; i < count; i++) {
        struct ask *root = ask_of(rows[i]);
        if (root)
            root->failing = true;
        let_go(s, own_ask_of(rows[i]));
    }
    return (TRITONSERVER_Error *)err_new(STATUS_INTERNAL, "the backend refuses");
}

/* Whose rows they are, while the requests are there. */
static struct ask **roots_of(TRITONBACKEND_Request **requests, uint32_t count)
{
    struct ask **roots = mem_alloc(count * sizeof(struct ask *));
    for (uint32_t i = 0; i < count; i++)
        roots[i] = ask_of(request_from(requests[i]));
    return roots;
}

static void leave(struct post *p, struct ask **roots, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (roots[i])
            roots[i]->inside--;
    mem_free(roots);
    p->executing = false;
    p->over = p->run;
    p->served->executing--;
    p->served->last_event = steps_now();
    steps_progress();
}

static void enter(struct post *p)
{
    if (p->executing)
        steps_fail("an instance executes twice at a time");
    p->executing = true;
    p->run++;
    p->served->executing++;
    world_counts.executions++;
    steps_progress();
}

static TRITONSERVER_Error *execute(TRITONBACKEND_ModelInstance *instance,
                                   TRITONBACKEND_Request **requests, uint32_t count)
{
    struct post *p = ((struct plugin_instance *)instance)->state;
    struct request **rows = mem_alloc(count * sizeof(struct request *));
    TRITONSERVER_Error *e = NULL;
    for (uint32_t i = 0; i < count; i++)
        rows[i] = request_from(requests[i]);
    struct ask **roots = roots_of(requests, count);
    enter(p);
    enter_loop(rows, count);
    for (uint32_t i = 0; i < count; i++)
        begin_row(p, rows[i]);
    spend_time();
    if (steps_one_in(40)) {
        e = refuse(rows, count, p->served);
    } else {
        for (uint32_t i = 0; i < count; i++)
            finish_row(p, request_take(requests[i]));
    }
    leave(p, roots, count);
    mem_free(rows);
    return e;
}

/* -- an execution in halves -- */

static void ring(const struct post *p)
{
    uint64_t one = 1;
    CHECK(write(p->bell, &one, sizeof(one)) == sizeof(one));
}

static int bell(TRITONBACKEND_ModelInstance *instance)
{
    struct post *p = ((struct plugin_instance *)instance)->state;
    p->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return p->bell;
}

/* Rings at once, later, or never. */
static void ring_some_time(struct post *p)
{
    static const time_ns spans[] = {TIME_US(20), TIME_US(200), TIME_MS(3), TIME_MS(700)};
    unsigned when = steps_pick(6);
    if (when == 0)
        ring(p);
    mutex_lock(&lock);
    if (when > 1 && left_count < MOST_LATER) {
        left[left_count++] = (struct later){.rings = p, .due = steps_now() + spans[when - 2]};
        mutex_cond_signal(&changed);
    }
    mutex_unlock(&lock);
}

static bool begin(TRITONBACKEND_ModelInstance *instance, TRITONBACKEND_Request **requests,
                  uint32_t count)
{
    struct post *p = ((struct plugin_instance *)instance)->state;
    if (!loop_current())
        steps_fail("a thread that is no loop begins");
    if (steps_one_in(20))
        return false;
    enter(p);
    world_counts.begun++;
    p->begun = requests;
    p->count = count;
    for (uint32_t i = 0; i < count; i++)
        begin_row(p, request_from(requests[i]));
    ring_some_time(p);
    return true;
}

static void end_begun(struct post *p)
{
    TRITONBACKEND_Request **requests = p->begun;
    struct ask **roots = roots_of(requests, p->count);
    p->begun = NULL;
    for (uint32_t i = 0; i < p->count; i++)
        finish_row(p, request_take(requests[i]));
    leave(p, roots, p->count);
}

static enum nereid_progress look(TRITONBACKEND_ModelInstance *instance)
{
    struct post *p = ((struct plugin_instance *)instance)->state;
    uint64_t rung;
    if (!loop_current() || !p->begun)
        steps_fail("it is looked where nothing was begun");
    if (read(p->bell, &rung, sizeof(rung)) < 0 || steps_one_in(10)) {
        ring_some_time(p);
        return NEREID_PENDING;
    }
    if (steps_one_in(10))
        return NEREID_BLOCKS;
    end_begun(p);
    return NEREID_ENDED;
}

static void finish(TRITONBACKEND_ModelInstance *instance)
{
    struct post *p = ((struct plugin_instance *)instance)->state;
    if (!p->begun)
        steps_fail("it is finished where nothing was begun");
    world_counts.finished++;
    spend_time();
    end_begun(p);
}

/* Its bell will not ring any more. */
static void forget_rings(struct post *p)
{
    mutex_lock(&lock);
    for (unsigned i = 0; i < left_count;)
        if (left[i].rings == p)
            left[i] = left[--left_count];
        else
            i++;
    mutex_unlock(&lock);
    if (p->bell >= 0)
        close(p->bell);
}

static TRITONSERVER_Error *initialize(TRITONBACKEND_ModelInstance *instance)
{
    struct plugin_instance *i = (struct plugin_instance *)instance;
    struct post *p = MEM_NEW(struct post);
    p->bell = -1;
    p->served = world_served(i->model);
    p->served->posts++;
    i->state = p;
    return steps_one_in(30) ? (TRITONSERVER_Error *)err_new(STATUS_INTERNAL, "no instance") : NULL;
}

static TRITONSERVER_Error *finalize(TRITONBACKEND_ModelInstance *instance)
{
    struct plugin_instance *i = (struct plugin_instance *)instance;
    struct post *p = i->state;
    if (p->executing)
        steps_fail("an instance goes while it executes");
    p->served->posts--;
    forget_rings(p);
    for (unsigned k = 0; k < ask_count; k++)
        asks[k].sender = asks[k].sender == p ? NULL : asks[k].sender;
    i->state = NULL;
    mem_free(p);
    return NULL;
}

#define ENTRIES  \
    .entries = { \
        .execute = execute, .instance_initialize = initialize, .instance_finalize = finalize}

static char name[] = "b";

struct plugin_backend backends[3] = {
    {.name = name, ENTRIES},
    {.name = name, .inline_ok = true, .answers_last = true, ENTRIES},
    {.name = name,
     ENTRIES,
     .entries.bell = bell,
     .entries.begin = begin,
     .entries.look = look,
     .entries.finish = finish}};

/* -- its own thread -- */

static void answer_late(const struct later *l)
{
    struct ask *root = ask_of(l->response->request);
    note_sent(l->ask, NULL, false);
    if (root)
        root->inside--;
    if (l->request) {
        send_final(l->request, l->response, l->ask, NULL, l->served);
    } else {
        if (l->ask)
            l->served->held--;
        response_send(l->response, RESPONSE_FINAL, NULL);
    }
    steps_progress();
}

static unsigned first_due(void)
{
    unsigned first = 0;
    for (unsigned i = 1; i < left_count; i++)
        if (left[i].due < left[first].due)
            first = i;
    return first;
}

static void work(void *arg)
{
    (void)arg;
    mutex_lock(&lock);
    while (!stopping || left_count) {
        unsigned first = first_due();
        if (!left_count || left[first].due > steps_now()) {
            mutex_cond_wait_until(&changed, &lock, left_count ? left[first].due : TIME_NEVER);
            continue;
        }
        struct later l = left[first];
        left[first] = left[--left_count];
        if (l.rings) { /* under the lock: the instance may be gone afterwards */
            ring(l.rings);
            steps_progress();
            continue;
        }
        mutex_unlock(&lock);
        answer_late(&l);
        mutex_lock(&lock);
    }
    mutex_unlock(&lock);
}

void backend_begin(void)
{
    stopping = false;
    mutex_cond_init(&changed);
    struct err *e = thread_start("backend", work, NULL, &thread);
    CHECK(!e);
}

void backend_end(void)
{
    mutex_lock(&lock);
    stopping = true;
    mutex_cond_signal(&changed);
    mutex_unlock(&lock);
    thread_join(thread);
}
