/* The data flow of an ensemble as indices, and which of it some outputs need. */
#include "ensembles/ensemble.h"

#include "base/mem.h"
#include "model/config.h"
#include "support/unit.h"

#include <string.h>

#define IN(name)              "input { name: '" name "' data_type: TYPE_FP32 dims: -1 } "
#define OUT(name)             "output { name: '" name "' data_type: TYPE_FP32 dims: -1 } "
#define MAP(kind, key, value) kind "_map { key: '" key "' value: '" value "' } "

/* in -> a -> mid -> b -> end; mid is an output too, and in also goes to c, which makes other. */
static const char text[] = "platform: 'ensemble' " IN("in") OUT("mid") OUT("end")
    OUT("other") "ensemble_scheduling { max_inflight_requests: 3 "
                 "step { model_name: 'a' model_version: -1 " MAP("input", "x", "in")
                     MAP("output", "y",
                         "mid") "} "
                                "step { model_name: 'b' model_version: 7 " MAP("input", "x", "mid")
                                    MAP("input", "z", "mid")
                                        MAP("output", "y",
                                            "end") "} "
                                                   "step { model_name: 'c' model_version: -1 " MAP(
                                                       "input", "x", "in")
                                                       MAP("output", "y", "other") "} }";

static struct ensemble *build(struct Inference__ModelConfig **ret_proto)
{
    unit_succeeds(config_parse_text(text, strlen(text), "config.pbtxt", ret_proto));
    return ensemble_new(*ret_proto);
}

static uint32_t tensor_of(const struct ensemble *en, const char *name)
{
    for (uint32_t i = 0; i < en->tensor_count; i++)
        if (strcmp(en->tensors[i].name, name) == 0)
            return i;
    fail();
    return 0;
}

/* PB-138, PB-139, PB-141, PB-144, PB-145. */
static void indices(void **state)
{
    (void)state;
    struct Inference__ModelConfig *proto;
    struct ensemble *en = build(&proto);
    assert_int_equal(en->step_count, 3);
    assert_int_equal(en->tensor_count, 4);
    assert_int_equal(en->max_inflight, 3);
    assert_int_equal(en->inputs[0], tensor_of(en, "in"));
    assert_int_equal(en->outputs[1], tensor_of(en, "end"));
    const struct ensemble_tensor *in = &en->tensors[tensor_of(en, "in")];
    assert_int_equal(in->maker, ENSEMBLE_NONE);
    assert_int_equal(in->user_count, 2);
    const struct ensemble_tensor *mid = &en->tensors[tensor_of(en, "mid")];
    assert_int_equal(mid->maker, 0);
    assert_int_equal(mid->user_count, 2); /* both inputs of b */
    assert_string_equal(en->steps[1].model, "b");
    assert_int_equal(en->steps[1].version, 7);
    assert_int_equal(en->steps[1].input_count, 2);
    assert_string_equal(en->steps[1].output_names[0], "y");
    ensemble_free(en);
    config_free_proto(proto);
}

static void needs(void **state)
{
    (void)state;
    static const struct {
        bool wanted[3];
        bool needed[3];
        uint32_t uses_in, uses_mid;
    } cases[] = {
        {{true, true, true}, {true, true, true}, 2, 3},
        {{true, false, false}, {true, false, false}, 1, 1},
        {{false, true, false}, {true, true, false}, 1, 2},
        {{false, false, true}, {false, false, true}, 1, 0},
        {{true, true, false}, {true, true, false}, 1, 3},
    };
    struct Inference__ModelConfig *proto;
    struct ensemble *en = build(&proto);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        bool needed[3];
        uint32_t uses[4];
        ensemble_need(en, cases[i].wanted, needed, uses);
        assert_memory_equal(needed, cases[i].needed, sizeof(needed));
        assert_int_equal(uses[tensor_of(en, "in")], cases[i].uses_in);
        assert_int_equal(uses[tensor_of(en, "mid")], cases[i].uses_mid);
    }
    assert_memory_equal(en->all_needed, cases[0].needed, sizeof(cases[0].needed));
    ensemble_free(en);
    config_free_proto(proto);
}

UNIT_MAIN(UNIT(indices), UNIT(needs))
