#include "ensembles/ensemble_flow.h"

#include "base/check.h"
#include "base/mem.h"

#include <string.h>

static size_t frame_bytes(const struct ensemble *en)
{
    return sizeof(struct ensemble_frame) + en->tensor_count * (sizeof(void *) + sizeof(uint32_t)) +
           en->step_count * 2 * sizeof(uint32_t) + en->tensor_count * sizeof(bool);
}

/* Places a frame and its arrays in memory of frame_bytes. */
static struct ensemble_frame *frame_init(const struct ensemble_flow *f, void *memory, bool own)
{
    const struct ensemble *en = f->plan;
    memset(memory, 0, frame_bytes(en));
    struct ensemble_frame *frame = memory;
    frame->own = own;
    frame->missing = f->wanted_count;
    frame->values = (void **)(frame + 1);
    frame->uses = (uint32_t *)(frame->values + en->tensor_count);
    frame->waits = frame->uses + en->tensor_count;
    frame->ready = frame->waits + en->step_count;
    frame->known = (bool *)(frame->ready + en->step_count);
    memcpy(frame->uses, f->uses, en->tensor_count * sizeof(*f->uses));
    for (uint32_t i = 0; i < en->step_count; i++)
        frame->waits[i] = en->steps[i].input_count;
    return frame;
}

static void ensemble_flow_drop(struct ensemble_flow *f, struct ensemble_frame *frame,
                               uint32_t tensor)
{
    void *value = frame->values[tensor];
    frame->values[tensor] = NULL;
    if (value)
        f->drop(value);
}

static void drop_all(struct ensemble_flow *f, struct ensemble_frame *frame)
{
    for (uint32_t i = 0; i < f->plan->tensor_count; i++)
        ensemble_flow_drop(f, frame, i);
}

void ensemble_flow_init(struct ensemble_flow *f, const struct ensemble *plan, struct arena *a,
                        const bool *wanted, ensemble_flow_drop_fn *drop_fn)
{
    *f = (struct ensemble_flow){
        .plan = plan, .wanted = wanted, .drop = drop_fn, .wanted_count = plan->output_count};
    f->needed = plan->all_needed;
    f->uses = plan->all_uses;
    if (wanted) {
        bool *needed = arena_alloc(a, plan->step_count * sizeof(*needed));
        uint32_t *uses = arena_alloc(a, plan->tensor_count * sizeof(*uses));
        ensemble_need(plan, wanted, needed, uses);
        f->needed = needed;
        f->uses = uses;
        f->wanted_count = 0;
        for (uint32_t i = 0; i < plan->output_count; i++)
            f->wanted_count += wanted[i];
    }
    f->first = frame_init(f, arena_alloc(a, frame_bytes(plan)), false);
    f->first->holds = 1;
}

void ensemble_flow_fini(struct ensemble_flow *f)
{
    CHECK(f->running == 0);
    drop_all(f, f->first);
}

static bool is_wanted_output(const struct ensemble_flow *f, uint32_t tensor)
{
    for (uint32_t i = 0; i < f->plan->output_count; i++)
        if (f->plan->outputs[i] == tensor)
            return !f->wanted || f->wanted[i];
    return false;
}

void ensemble_flow_put(struct ensemble_flow *f, struct ensemble_frame *frame, uint32_t tensor,
                       void *value)
{
    if (frame->known[tensor]) {
        if (value)
            f->drop(value);
        return;
    }
    const struct ensemble_tensor *t = &f->plan->tensors[tensor];
    frame->known[tensor] = true;
    frame->values[tensor] = value;
    if (is_wanted_output(f, tensor))
        frame->missing--;
    for (uint32_t i = 0; i < t->user_count; i++)
        if (--frame->waits[t->users[i]] == 0 && f->needed[t->users[i]])
            frame->ready[frame->ready_count++] = t->users[i];
    if (!frame->uses[tensor])
        ensemble_flow_drop(f, frame, tensor);
}

bool ensemble_flow_take(struct ensemble_flow *f, struct ensemble_frame *frame, uint32_t *ret_step)
{
    if (f->failed || frame->taken == frame->ready_count)
        return false;
    *ret_step = frame->ready[frame->taken++];
    f->running++;
    frame->holds++;
    return true;
}

void ensemble_flow_started(struct ensemble_flow *f, struct ensemble_frame *frame, uint32_t step)
{
    const struct ensemble_step *s = &f->plan->steps[step];
    for (uint32_t i = 0; i < s->input_count; i++)
        if (--frame->uses[s->inputs[i].tensor] == 0)
            ensemble_flow_drop(f, frame, s->inputs[i].tensor);
}

struct ensemble_frame *ensemble_flow_answered(struct ensemble_flow *f, struct ensemble_frame *frame,
                                              bool decoupled)
{
    if (decoupled)
        frame = frame_init(f, mem_alloc(frame_bytes(f->plan)), true);
    frame->holds++;
    return frame;
}

void ensemble_flow_leave(struct ensemble_flow *f, struct ensemble_frame *frame)
{
    if (--frame->holds || !frame->own)
        return;
    drop_all(f, frame);
    mem_free(frame);
}

void ensemble_flow_ended(struct ensemble_flow *f, struct ensemble_frame *frame)
{
    CHECK(f->running);
    f->running--;
    ensemble_flow_leave(f, frame);
}

bool ensemble_flow_complete(const struct ensemble_flow *f, struct ensemble_frame *frame)
{
    if (f->failed || frame->missing || !f->wanted_count)
        return false;
    frame->missing = UINT32_MAX; /* so that the frame is complete only once */
    return true;
}
