/* The data flow of ensembles: random graphs of steps, some decoupled, whose responses arrive in
 * random order. After each event: a step starts once for what it belongs to, when all its inputs
 * are there, with inputs that belong together; at the end every answer was given once and every
 * value was given back. NEREID_SIM_SEED=n plays one seed, NEREID_SIM_RUNS=n sets how many are
 * played. */
#include "ensembles/ensemble_flow.h"

#include "base/mem.h"
#include "base/strbuf.h"
#include "model/config.h"
#include "support/unit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RUNS        3000u
#define MAX_STEPS   9u
#define MAX_TENSORS 32u
#define MAX_EVENTS  4096u
#define MAX_ORIGINS 4096u

/* A graph as it is made up; a tensor's label is the decoupled step that it follows from, plus 1. */
struct graph {
    unsigned step_count, tensor_count, input_count, output_count;
    unsigned labels[MAX_TENSORS];
    bool decoupled[MAX_STEPS];
    unsigned outputs[3];
    bool wanted[3];
    bool all; /* outputs are wanted */
};

/* What a value follows from: a response of a decoupled step; 0 = the request itself. */
struct value {
    unsigned tensor;
    unsigned origin;
};

/* A step under way. */
struct pending {
    struct ensemble_frame *frame;
    uint32_t step;
    unsigned origin;
    unsigned responses; /* that are still to come */
};

static uint64_t seed;
static long live; /* values */

static unsigned pick(unsigned below)
{
    return (unsigned)(unit_random(&seed) % below);
}

static void drop(void *value)
{
    live--;
    mem_free(value);
}

static struct value *value_new(unsigned tensor, unsigned origin)
{
    struct value *v = MEM_NEW(struct value);
    *v = (struct value){tensor, origin};
    live++;
    return v;
}

static void put_ports(struct strbuf *sb, const char *kind, const unsigned *tensors, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        strbuf_printf(sb, "%s_map { key: 'p%u' value: 't%u' } ", kind, i, tensors[i]);
}

/* Tensors of one label, some of them twice. */
static unsigned pick_inputs(const struct graph *g, unsigned *ret)
{
    unsigned first = pick(g->tensor_count);
    unsigned count = 1 + pick(3);
    ret[0] = first;
    for (unsigned i = 1; i < count; i++) {
        do
            ret[i] = pick(g->tensor_count);
        while (g->labels[ret[i]] != g->labels[first]);
    }
    return count;
}

static void make_steps(struct graph *g, struct strbuf *sb)
{
    g->step_count = 1 + pick(MAX_STEPS);
    for (unsigned s = 0; s < g->step_count; s++) {
        unsigned ports[3];
        unsigned count = pick_inputs(g, ports);
        unsigned label = g->labels[ports[0]];
        g->decoupled[s] = pick(6) == 0;
        strbuf_printf(sb, "step { model_name: 'm%u' model_version: -1 ", s);
        put_ports(sb, "input", ports, count);
        count = 1 + pick(2);
        for (unsigned i = 0; i < count; i++) {
            ports[i] = g->tensor_count;
            g->labels[g->tensor_count++] = g->decoupled[s] ? s + 1 : label;
        }
        put_ports(sb, "output", ports, count);
        strbuf_puts(sb, "} ");
    }
}

static struct Inference__ModelConfig *make_up(struct graph *g)
{
    struct strbuf flow = STRBUF_INIT;
    struct strbuf text = STRBUF_INIT;
    memset(g, 0, sizeof(*g));
    g->input_count = g->tensor_count = 1 + pick(3);
    make_steps(g, &flow);
    strbuf_puts(&text, "platform: 'ensemble' ");
    for (unsigned i = 0; i < g->input_count; i++)
        strbuf_printf(&text, "input { name: 't%u' data_type: TYPE_FP32 dims: 1 } ", i);
    unsigned made = g->tensor_count - g->input_count;
    unsigned first = g->input_count + pick(made);
    for (unsigned i = 0; i < made && g->output_count < 3; i++) {
        unsigned t = g->input_count + (first - g->input_count + i) % made;
        if (i && (g->labels[t] != g->labels[first] || pick(2)))
            continue;
        g->wanted[g->output_count] = pick(3) > 0;
        g->outputs[g->output_count++] = t;
        strbuf_printf(&text, "output { name: 't%u' data_type: TYPE_FP32 dims: 1 } ", t);
    }
    g->wanted[pick(g->output_count)] = true;
    g->all = pick(2);
    strbuf_printf(&text, "ensemble_scheduling { %s }", strbuf_str(&flow));
    struct Inference__ModelConfig *proto;
    unit_succeeds(config_parse_text(strbuf_str(&text), text.len, "config.pbtxt", &proto));
    strbuf_fini(&flow);
    strbuf_fini(&text);
    return proto;
}

/* One request. */
struct play {
    const struct graph *g;
    struct ensemble_flow flow;
    struct pending pending[MAX_EVENTS];
    unsigned pending_count;
    unsigned origins;               /* made so far; 0 is the request */
    unsigned label_of[MAX_ORIGINS]; /* of each origin */
    bool answered[MAX_ORIGINS];     /* of each origin */
    bool started[MAX_ORIGINS][MAX_STEPS];
    bool failed;
};

static unsigned tensor_number(const struct ensemble *en, uint32_t tensor)
{
    return (unsigned)strtoul(en->tensors[tensor].name + 1, NULL, 10);
}

static void start_ready(struct play *p, struct ensemble_frame *frame)
{
    uint32_t step;
    while (ensemble_flow_take(&p->flow, frame, &step)) {
        const struct ensemble_step *s = &p->flow.plan->steps[step];
        assert_false(p->failed);
        assert_true(p->flow.needed[step]);
        struct pending *n = &p->pending[p->pending_count++];
        assert_true(p->pending_count < MAX_EVENTS);
        *n = (struct pending){.frame = frame, .step = step};
        for (uint32_t i = 0; i < s->input_count; i++) {
            const struct value *v = frame->values[s->inputs[i].tensor];
            assert_non_null(v);
            assert_int_equal(v->tensor, tensor_number(p->flow.plan, s->inputs[i].tensor));
            assert_true(i == 0 || v->origin == n->origin);
            n->origin = v->origin;
        }
        assert_false(p->started[n->origin][step]);
        p->started[n->origin][step] = true;
        n->responses = p->g->decoupled[step] && p->origins < MAX_ORIGINS / 2 ? pick(4) : 1;
        ensemble_flow_started(&p->flow, frame, step);
    }
}

static void check_answer(struct play *p, struct ensemble_frame *frame)
{
    if (!ensemble_flow_complete(&p->flow, frame))
        return;
    unsigned origin = 0;
    bool first = true;
    for (unsigned i = 0; i < p->g->output_count; i++) {
        if (!p->g->all && !p->g->wanted[i])
            continue;
        const struct value *v = frame->values[p->flow.plan->outputs[i]];
        assert_non_null(v);
        assert_true(first || v->origin == origin);
        origin = v->origin;
        first = false;
    }
    assert_false(p->answered[origin]);
    p->answered[origin] = true;
    assert_false(ensemble_flow_complete(&p->flow, frame));
}

/* A response of a step under way, or its end without one. */
static void respond(struct play *p, unsigned which)
{
    struct pending *n = &p->pending[which];
    const struct ensemble_step *s = &p->flow.plan->steps[n->step];
    bool decoupled = p->g->decoupled[n->step];
    bool empty = n->responses == 0;
    struct ensemble_frame *from = n->frame;
    struct ensemble_frame *frame = ensemble_flow_answered(&p->flow, from, decoupled && !empty);
    if (!empty && pick(400) == 0)
        p->failed = p->flow.failed = true;
    unsigned origin = n->origin;
    if (decoupled && !empty) {
        origin = ++p->origins;
        assert_true(origin < MAX_ORIGINS);
        p->label_of[origin] = n->step + 1;
    }
    for (uint32_t i = 0; !empty && !p->failed && i < s->output_count; i++)
        ensemble_flow_put(&p->flow, frame, s->outputs[i].tensor,
                          value_new(tensor_number(p->flow.plan, s->outputs[i].tensor), origin));
    if (n->responses)
        n->responses--;
    /* A decoupled model may say that it was the last with the response, or afterwards. */
    if (n->responses == 0 && (empty || !decoupled || pick(2))) {
        *n = p->pending[--p->pending_count];
        ensemble_flow_ended(&p->flow, from);
    }
    start_ready(p, frame);
    check_answer(p, frame);
    ensemble_flow_leave(&p->flow, frame);
}

static void begin(struct play *p, const struct graph *g, const struct ensemble *en, struct arena *a)
{
    memset(p, 0, sizeof(*p));
    p->g = g;
    ensemble_flow_init(&p->flow, en, a, g->all ? NULL : g->wanted, drop);
    for (unsigned i = 0; i < g->input_count; i++)
        ensemble_flow_put(&p->flow, p->flow.first, en->inputs[i], value_new(i, 0));
    start_ready(p, p->flow.first);
    check_answer(p, p->flow.first);
}

/* Whatever was to happen happened, for each origin that the outputs can belong to. */
static void check_end(const struct play *p)
{
    assert_true(ensemble_flow_over(&p->flow));
    unsigned label = p->g->labels[p->g->outputs[0]];
    for (unsigned o = 0; !p->failed && o <= p->origins; o++)
        if (p->label_of[o] == label)
            assert_true(p->answered[o]);
        else
            assert_false(p->answered[o]);
}

static void play(uint64_t from)
{
    static struct play p;
    struct graph g;
    struct arena a;
    seed = from;
    live = 0;
    arena_init(&a, NULL, 0);
    struct Inference__ModelConfig *proto = make_up(&g);
    struct ensemble *en = ensemble_new(proto);
    begin(&p, &g, en, &a);
    while (p.pending_count)
        respond(&p, pick(p.pending_count));
    check_end(&p);
    ensemble_flow_fini(&p.flow);
    assert_int_equal(live, 0);
    ensemble_free(en);
    config_free_proto(proto);
    arena_fini(&a);
}

static unsigned long from_env(const char *name, unsigned long otherwise)
{
    const char *text = getenv(name);
    return text ? strtoul(text, NULL, 10) : otherwise;
}

/* PB-144. */
static void random_graphs(void **state)
{
    (void)state;
    unsigned long one = from_env("NEREID_SIM_SEED", 0);
    unsigned long runs = one ? 1 : from_env("NEREID_SIM_RUNS", RUNS);
    for (unsigned long i = 0; i < runs; i++) {
        unsigned long which = one ? one : i + 1;
        if (runs > 1 && i % 1000 == 0)
            print_message("from NEREID_SIM_SEED=%lu on\n", which);
        play(which);
    }
}

UNIT_MAIN(UNIT(random_graphs))
