#include "ensembles/ensemble.h"

#include "base/map.h"
#include "base/mem.h"
#include "proto/model_config.pb-c.h"

#include <string.h>

typedef Inference__ModelEnsembling__Step step_proto;

/* Maps the names of tensors to indices while the plan is built. */
struct names {
    struct map index; /* name -> its index + 1 */
    struct ensemble *en;
};

static uint32_t tensor_of(struct names *n, const char *name)
{
    uintptr_t found = (uintptr_t)map_get(&n->index, name, strlen(name));
    if (found)
        return (uint32_t)(found - 1);
    struct ensemble *en = n->en;
    en->tensors = mem_realloc(en->tensors, (en->tensor_count + 1) * sizeof(*en->tensors));
    en->tensors[en->tensor_count] = (struct ensemble_tensor){.name = name, .maker = ENSEMBLE_NONE};
    /* An index, kept in the place of a pointer. NOLINTNEXTLINE(performance-no-int-to-ptr) */
    map_put(&n->index, name, strlen(name), (void *)(uintptr_t)(en->tensor_count + 1));
    return en->tensor_count++;
}

static void add_user(struct ensemble_tensor *t, uint32_t step)
{
    t->users = mem_realloc(t->users, (t->user_count + 1) * sizeof(*t->users));
    t->users[t->user_count++] = step;
}

static void build_step(struct names *n, const step_proto *p, uint32_t index)
{
    struct ensemble_step *s = &n->en->steps[index];
    s->model = p->model_name;
    s->space = p->model_namespace;
    s->version = p->model_version;
    s->inputs = mem_alloc(p->n_input_map * sizeof(*s->inputs));
    s->outputs = mem_alloc(p->n_output_map * sizeof(*s->outputs));
    s->output_names = mem_alloc(p->n_output_map * sizeof(char *));
    for (size_t i = 0; i < p->n_input_map; i++) {
        uint32_t tensor = tensor_of(n, p->input_map[i]->value);
        s->inputs[s->input_count++] = (struct ensemble_port){p->input_map[i]->key, tensor};
        add_user(&n->en->tensors[tensor], index);
    }
    for (size_t i = 0; i < p->n_output_map; i++) {
        uint32_t tensor = tensor_of(n, p->output_map[i]->value);
        s->output_names[i] = p->output_map[i]->key;
        s->outputs[s->output_count++] = (struct ensemble_port){p->output_map[i]->key, tensor};
        n->en->tensors[tensor].maker = index;
    }
}

static void need_all(struct ensemble *en)
{
    bool *wanted = mem_alloc((en->output_count + 1) * sizeof(*wanted));
    for (uint32_t i = 0; i < en->output_count; i++)
        wanted[i] = true;
    en->all_needed = mem_alloc((en->step_count + 1) * sizeof(*en->all_needed));
    en->all_uses = mem_alloc((en->tensor_count + 1) * sizeof(*en->all_uses));
    ensemble_need(en, wanted, en->all_needed, en->all_uses);
    mem_free(wanted);
}

struct ensemble *ensemble_new(const Inference__ModelConfig *proto)
{
    const Inference__ModelEnsembling *p = proto->ensemble_scheduling;
    struct ensemble *en = MEM_NEW(struct ensemble);
    struct names n = {.index = MAP_INIT, .en = en};
    en->max_inflight = p->max_inflight_requests;
    en->inputs = mem_alloc((proto->n_input + 1) * sizeof(*en->inputs));
    en->outputs = mem_alloc((proto->n_output + 1) * sizeof(*en->outputs));
    en->steps = mem_zalloc((p->n_step + 1) * sizeof(*en->steps));
    for (size_t i = 0; i < proto->n_input; i++)
        en->inputs[en->input_count++] = tensor_of(&n, proto->input[i]->name);
    for (size_t i = 0; i < proto->n_output; i++)
        en->outputs[en->output_count++] = tensor_of(&n, proto->output[i]->name);
    for (size_t i = 0; i < p->n_step; i++)
        build_step(&n, p->step[i], en->step_count++);
    map_fini(&n.index);
    need_all(en);
    return en;
}

void ensemble_free(struct ensemble *en)
{
    if (!en)
        return;
    for (uint32_t i = 0; i < en->step_count; i++) {
        mem_free(en->steps[i].inputs);
        mem_free(en->steps[i].outputs);
        mem_free(en->steps[i].output_names);
    }
    for (uint32_t i = 0; i < en->tensor_count; i++)
        mem_free(en->tensors[i].users);
    mem_free(en->steps);
    mem_free(en->tensors);
    mem_free(en->inputs);
    mem_free(en->outputs);
    mem_free(en->all_needed);
    mem_free(en->all_uses);
    mem_free(en);
}

void ensemble_need(const struct ensemble *en, const bool *wanted, bool *ret_needed,
                   uint32_t *ret_uses)
{
    uint32_t *stack = mem_alloc((en->step_count + 1) * sizeof(*stack));
    uint32_t count = 0;
    memset(ret_needed, 0, en->step_count * sizeof(*ret_needed));
    memset(ret_uses, 0, en->tensor_count * sizeof(*ret_uses));
    for (uint32_t i = 0; i < en->output_count; i++) {
        if (!wanted[i])
            continue;
        uint32_t maker = en->tensors[en->outputs[i]].maker;
        ret_uses[en->outputs[i]]++;
        if (maker != ENSEMBLE_NONE && !ret_needed[maker]) {
            ret_needed[maker] = true;
            stack[count++] = maker;
        }
    }
    while (count) {
        const struct ensemble_step *s = &en->steps[stack[--count]];
        for (uint32_t i = 0; i < s->input_count; i++) {
            uint32_t maker = en->tensors[s->inputs[i].tensor].maker;
            ret_uses[s->inputs[i].tensor]++;
            if (maker != ENSEMBLE_NONE && !ret_needed[maker]) {
                ret_needed[maker] = true;
                stack[count++] = maker;
            }
        }
    }
    mem_free(stack);
}
