/* Reading configurations and label files while memory is short. */
#include "base/mem.h"
#include "model/config.h"
#include "model/config_fill.h"
#include "model/labels.h"
#include "support/fault_run.h"
#include "support/unit.h"

#include <string.h>

static const char text[] =
    "name: \"m\" backend: \"identity\" max_batch_size: 8\n"
    "input [ { name: \"a\" data_type: TYPE_FP32 dims: [ -1, 3 ] } ]\n"
    "output { name: \"b\" data_type: TYPE_FP32 dims: [ 2 ] label_filename: \"l.txt\" }\n"
    "dynamic_batching { preferred_batch_size: [ 4, 8 ] priority_queue_policy { key: 1 value { "
    "max_queue_size: 3 } } }\n"
    "parameters { key: \"k\" value { string_value: \"v\" } }\n";

static const char json[] = "{\"name\":\"m\",\"backend\":\"identity\",\"input\":[{\"name\":\"a\","
                           "\"data_type\":\"TYPE_FP32\",\"dims\":[\"-1\",3]}],"
                           "\"output\":[{\"name\":\"b\",\"data_type\":\"TYPE_FP32\",\"dims\":[2]}],"
                           "\"parameters\":{\"k\":{\"string_value\":\"v\"}}}";

static struct err *use(struct err *e, struct Inference__ModelConfig *proto)
{
    struct model_config *config = NULL;
    if (!e) {
        config_fill_defaults(proto, "m");
        e = config_compile(&proto, &config);
    }
    if (!e)
        mem_free(config_print_json(config->proto, NULL));
    if (config)
        config_unref(config);
    config_free_proto(proto);
    return e;
}

static struct err *read_text(void *arg)
{
    (void)arg;
    struct Inference__ModelConfig *proto = NULL;
    struct err *e = config_parse_text(text, sizeof(text) - 1, "config.pbtxt", &proto);
    return use(e, proto);
}

static struct err *read_json(void *arg)
{
    (void)arg;
    struct Inference__ModelConfig *proto = NULL;
    struct err *e = config_parse_json(json, sizeof(json) - 1, &proto);
    return use(e, proto);
}

static struct err *read_labels(void *arg)
{
    (void)arg;
    struct labels *l = NULL;
    struct err *e = labels_parse("zero\none\ntwo\n", 13, "labels.txt", &l);
    labels_free(l);
    return e;
}

static void configurations_as_text(void **state)
{
    (void)state;
    assert_true(fault_run(read_text, NULL) > 0);
}

static void configurations_as_json(void **state)
{
    (void)state;
    assert_true(fault_run(read_json, NULL) > 0);
}

static void label_files(void **state)
{
    (void)state;
    assert_true(fault_run(read_labels, NULL) > 0);
}

UNIT_MAIN(UNIT(configurations_as_text), UNIT(configurations_as_json), UNIT(label_files))
