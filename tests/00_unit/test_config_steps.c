/* An ensemble against the models of its steps; the wording is the reference's. */
#include "model/config_steps.h"

#include "model/config.h"
#include "support/unit.h"

#include <stdio.h>
#include <string.h>

#define T(kind, name, type, dims) \
    kind " { name: '" name "' data_type: " type " dims: [ " dims " ] } "
#define STEP(model, in, out) "step { model_name: '" model "' model_version: -1 " in out "} "
#define I(key, value)        "input_map { key: '" key "' value: '" value "' } "
#define O(key, value)        "output_map { key: '" key "' value: '" value "' } "

static const struct {
    const char *name, *text;
} models[] = {
    {"f4", T("input", "x", "TYPE_FP32", "4") T("output", "y", "TYPE_FP32", "4")},
    {"any", T("input", "x", "TYPE_FP32", "-1") T("output", "y", "TYPE_FP32", "-1")},
    {"int", T("input", "x", "TYPE_INT32", "4") T("output", "y", "TYPE_INT32", "4")},
    {"batch",
     "max_batch_size: 4 " T("input", "x", "TYPE_FP32", "4") T("output", "y", "TYPE_FP32", "4")},
    {"rows", T("input", "x", "TYPE_FP32", "-1, 4") T("output", "y", "TYPE_FP32", "-1, 4")},
    {"pair", T("input", "x", "TYPE_FP32", "4") T("input", "z", "TYPE_FP32", "4")
                 T("output", "y", "TYPE_FP32", "4") T("output", "w", "TYPE_FP32", "4")},
    {"maybe",
     T("input", "x", "TYPE_FP32",
       "4") "input { name: 'z' data_type: TYPE_FP32 dims: 4 optional: true } " T("output", "y",
                                                                                 "TYPE_FP32", "4")},
    {"many", "model_transaction_policy { decoupled: true } " T("input", "x", "TYPE_FP32", "4")
                 T("output", "y", "TYPE_FP32", "4")},
};

static struct Inference__ModelConfig *parse(const char *text)
{
    struct Inference__ModelConfig *proto;
    unit_succeeds(config_parse_text(text, strlen(text), "config.pbtxt", &proto));
    return proto;
}

static struct Inference__ModelConfig *parsed[sizeof(models) / sizeof(models[0])];

static const struct Inference__ModelConfig *find(void *owner, const char *model)
{
    (void)owner;
    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++)
        if (strcmp(models[i].name, model) == 0)
            return parsed[i];
    return NULL;
}

struct rule {
    const char *text;
    const char *error; /* "" = fits */
    bool decoupled;
};

#define E4                                                               \
    "name: 'e' platform: 'ensemble' " T("input", "in", "TYPE_FP32", "4") \
        T("output", "out", "TYPE_FP32", "4")
#define FLOW(steps) "ensemble_scheduling { " steps " }"

static const struct rule rules[] = {
    {E4 FLOW(STEP("f4", I("x", "in"), O("y", "out"))), "", false},
    {E4 FLOW(STEP("any", I("x", "in"), O("y", "t")) STEP("f4", I("x", "t"), O("y", "out"))), "",
     false},
    {E4 FLOW(STEP("int", I("x", "in"), O("y", "out"))),
     "in ensemble e, ensemble tensor in: inconsistent data type: TYPE_FP32 is inferred from model "
     "e while TYPE_INT32 is inferred "
     "from model int",
     false},
    {E4 FLOW(STEP("f4", I("nope", "in"), O("y", "out"))),
     "in ensemble e, ensemble tensor in is mapping to non-existing input nope in model f4", false},
    {E4 FLOW(STEP("f4", I("x", "in"), O("nope", "out"))),
     "in ensemble e, ensemble tensor out is mapped from non-existing output nope in model f4",
     false},
    {E4 FLOW(STEP("pair", I("x", "in"), O("y", "out"))),
     "in ensemble e, input z in model pair is not mapped to any ensemble tensors", false},
    {E4 FLOW(STEP("pair", I("x", "in") I("z", "in"), O("y", "out"))), "", false},
    {E4 FLOW(STEP("maybe", I("x", "in"), O("y", "out"))), "", false},
    {E4 FLOW(STEP("gone", I("x", "in"), O("y", "out"))),
     "ensemble e contains models that are not available or ambiguous: gone", false},
    {E4 "max_batch_size: 8 " FLOW(STEP("batch", I("x", "in"), O("y", "out"))),
     "ensemble e allows maximum batch size 8, but it contains model batch which only allows "
     "maximum batch size to be 4",
     false},
    {E4 "max_batch_size: 4 " FLOW(STEP("batch", I("x", "in"), O("y", "out"))), "", false},
    {E4 "max_batch_size: 4 " FLOW(STEP("batch", I("x", "in"), O("y", "t"))
                                      STEP("rows", I("x", "t"), O("y", "out"))),
     "", false},
    {E4 FLOW(STEP("batch", I("x", "in"), O("y", "out"))), "", false},
    {E4 FLOW(STEP("rows", I("x", "in"), O("y", "out"))),
     "in ensemble e, ensemble tensor in: inconsistent shape: [4] is inferred from model e while "
     "[-1,4] is inferred from model rows",
     false},
    {E4 FLOW(STEP("many", I("x", "in"), O("y", "out"))), "", true},
    {E4 FLOW(STEP("many", I("x", "in"), O("y", "t")) STEP("f4", I("x", "t"), O("y", "out"))), "",
     true},
    {E4 FLOW(STEP("many", I("x", "in"), O("y", "t"))
                 STEP("pair", I("x", "t") I("z", "in"), O("y", "out"))),
     "in ensemble e, step of model 'pair' receives inputs originated from different decoupled "
     "models",
     false},
    {E4 T("output", "more", "TYPE_FP32", "4")
         FLOW(STEP("many", I("x", "in"), O("y", "out")) STEP("f4", I("x", "in"), O("y", "more"))),
     "in ensemble e, step of model 'e' receives inputs originated from different decoupled models",
     false},
};

/* PB-142, PB-143, PB-146, PB-147. */
static void steps(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++)
        parsed[i] = parse(models[i].text);
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        struct Inference__ModelConfig *p = parse(rules[i].text);
        bool decoupled = false;
        struct err *e = config_steps_check(p, find, NULL, &decoupled);
        assert_string_equal(e ? err_message(e) : "", rules[i].error);
        assert_int_equal(decoupled, rules[i].decoupled);
        err_free(e);
        config_free_proto(p);
    }
    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++)
        config_free_proto(parsed[i]);
}

UNIT_MAIN(UNIT(steps))
