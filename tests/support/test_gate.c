#include "support/test_gate.h"

#include "infer/response.h"
#include "model/config.h"
#include "os/clock.h"
#include "os/mutex.h"
#include "serve/version.h"
#include "support/unit.h"

struct mutex test_gate_lock = MUTEX_INIT(MUTEX_RANK_LEAF);
unsigned test_gate_entered;
unsigned test_gate_answered;
unsigned test_gate_failed;

static struct mutex_cond changed;
static bool is_open;

void test_gate_begin(bool open)
{
    mutex_cond_init(&changed);
    is_open = open;
    test_gate_entered = test_gate_answered = test_gate_failed = 0;
}

void test_gate_end(void)
{
    mutex_cond_fini(&changed);
}

void test_gate_set(bool open)
{
    mutex_lock(&test_gate_lock);
    is_open = open;
    mutex_cond_broadcast(&changed);
    mutex_unlock(&test_gate_lock);
}

void test_gate_pass(unsigned n)
{
    mutex_lock(&test_gate_lock);
    test_gate_entered += n;
    mutex_cond_broadcast(&changed);
    while (!is_open)
        mutex_cond_wait(&changed, &test_gate_lock);
    mutex_unlock(&test_gate_lock);
}

void test_gate_wait(const unsigned *what, unsigned n)
{
    mutex_lock(&test_gate_lock);
    while (*what < n)
        assert_true(mutex_cond_wait_until(&changed, &test_gate_lock, clock_now_ns() + TIME_S(60)));
    mutex_unlock(&test_gate_lock);
}

void test_gate_add(unsigned *what)
{
    mutex_lock(&test_gate_lock);
    ++*what;
    mutex_cond_broadcast(&changed);
    mutex_unlock(&test_gate_lock);
}

void test_gate_on_answer(struct response *r, void *owner)
{
    (void)owner;
    mutex_lock(&test_gate_lock);
    test_gate_answered++;
    test_gate_failed += r->error != NULL;
    mutex_cond_broadcast(&changed);
    mutex_unlock(&test_gate_lock);
    response_free(r);
}

struct request *test_gate_request(struct serve_version *v, struct loop *home,
                                  request_respond_fn respond, const int32_t *value)
{
    const struct tensor_piece piece = {.data = value, .size = sizeof(*value)};
    uint32_t rank = v->config->max_batch_size ? 2 : 1;
    version_pin(v);
    struct request *r = request_new(&v->target, home, respond, (void *)(uintptr_t)value);
    request_add_input(r, "i", 1, DATATYPE_INT32, (int64_t[]){1, 1}, rank, &piece, 1);
    unit_succeeds(request_prepare(r));
    r->times.start = clock_now_ns();
    return r;
}
