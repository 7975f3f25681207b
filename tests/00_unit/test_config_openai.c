/* The parameter "openai" of a model: what requests in that form say and hear. */
#include "support/config_steps.h"
#include "support/unit.h"

#include "base/strbuf.h"
#include "model/config_openai.h"

#include <string.h>

#define MODEL                                                        \
    "name: \"m\"   \nbackend: \"identity\"\n"                        \
    "input [ { name: \"P\" data_type: TYPE_STRING dims: [ 1 ] },\n"  \
    "        { name: \"M\" data_type: TYPE_STRING dims: [ 1 ] },\n"  \
    "        { name: \"N\" data_type: TYPE_INT32 dims: [ 1 ] },\n"   \
    "        { name: \"S\" data_type: TYPE_BOOL dims: [ 1 ] } ]\n"   \
    "output [ { name: \"T\" data_type: TYPE_STRING dims: [ 1 ] },\n" \
    "         { name: \"E\" data_type: TYPE_FP32 dims: [ -1 ] },\n"  \
    "         { name: \"C\" data_type: TYPE_UINT32 dims: [ 1 ] } ]\n"

static const char *with_parameter(struct strbuf *sb, const char *mapping)
{
    strbuf_puts(sb, MODEL);
    strbuf_printf(sb, "parameters { key: \"openai\" value { string_value: '%s' } }\n", mapping);
    return strbuf_str(sb);
}

static struct model_config *loaded(const char *mapping)
{
    struct strbuf sb = STRBUF_INIT;
    struct model_config *cfg = config_steps_load(with_parameter(&sb, mapping));
    strbuf_fini(&sb);
    return cfg;
}

static bool serves(const struct model_config *cfg, enum config_openai_task task)
{
    return config_openai_serves(cfg->openai, task);
}

static void a_model_without_it_serves_nothing(void **state)
{
    (void)state;
    struct model_config *cfg = config_steps_load(MODEL);
    assert_null(cfg->openai);
    assert_false(serves(cfg, CONFIG_OPENAI_CHAT));
    config_unref(cfg);
}

static void all_of_it(void **state)
{
    (void)state;
    struct model_config *cfg =
        loaded("{\"prompt\":\"P\",\"messages\":\"M\",\"stream\":\"S\",\"text\":\"T\","
               "\"completion_tokens\":\"C\",\"inputs\":{\"max_tokens\":\"N\"},"
               "\"defaults\":{\"max_tokens\":16}}");
    const struct config_openai *o = cfg->openai;
    assert_ptr_equal(o->inputs[CONFIG_OPENAI_PROMPT], &cfg->inputs[0]);
    assert_ptr_equal(o->inputs[CONFIG_OPENAI_MESSAGES], &cfg->inputs[1]);
    assert_ptr_equal(o->inputs[CONFIG_OPENAI_STREAM], &cfg->inputs[3]);
    assert_null(o->inputs[CONFIG_OPENAI_REQUEST]);
    assert_ptr_equal(o->outputs[CONFIG_OPENAI_TEXT], &cfg->outputs[0]);
    assert_ptr_equal(o->outputs[CONFIG_OPENAI_COMPLETION_TOKENS], &cfg->outputs[2]);
    assert_int_equal(o->member_count, 1);
    assert_string_equal(o->members[0].name, "max_tokens");
    assert_ptr_equal(o->members[0].input, &cfg->inputs[2]);
    assert_int_equal(yyjson_get_int(o->members[0].standard), 16);
    assert_true(serves(cfg, CONFIG_OPENAI_COMPLETIONS));
    assert_true(serves(cfg, CONFIG_OPENAI_CHAT));
    assert_false(serves(cfg, CONFIG_OPENAI_EMBEDDINGS));
    config_unref(cfg);
}

static void who_serves_what(void **state)
{
    (void)state;
    struct model_config *cfg = loaded("{\"messages\":\"M\",\"text\":\"T\"}");
    assert_false(serves(cfg, CONFIG_OPENAI_COMPLETIONS));
    assert_true(serves(cfg, CONFIG_OPENAI_CHAT));
    config_unref(cfg);
    cfg = loaded("{\"input\":\"P\",\"embedding\":\"E\"}");
    assert_false(serves(cfg, CONFIG_OPENAI_CHAT));
    assert_true(serves(cfg, CONFIG_OPENAI_EMBEDDINGS));
    config_unref(cfg);
    cfg = loaded("{\"request\":\"P\",\"embedding\":\"E\",\"text\":\"T\"}");
    for (int task = CONFIG_OPENAI_COMPLETIONS; task <= CONFIG_OPENAI_EMBEDDINGS; task++)
        assert_true(serves(cfg, (enum config_openai_task)task));
    config_unref(cfg);
}

static void expect_refused(const char *mapping, const char *words)
{
    struct strbuf sb = STRBUF_INIT;
    const char *message = config_steps_error(with_parameter(&sb, mapping), NULL);
    if (!strstr(message, words))
        fail_msg("expected \"%s\", found \"%s\"", words, message);
    strbuf_fini(&sb);
}

static void what_is_wrong_is_said(void **state)
{
    (void)state;
    expect_refused("", "model 'm': parameter 'openai': expected a JSON object: ");
    expect_refused("7", "expected a JSON object, found uint");
    expect_refused("{}", "expected 'text' and one of");
    expect_refused("{\"prompt\":7,\"text\":\"T\"}",
                   "'prompt': expected the name of an input, found uint");
    expect_refused("{\"prompt\":\"T\",\"text\":\"T\"}",
                   "'prompt': expected the name of an input, found 'T'");
    expect_refused("{\"prompt\":\"P\",\"text\":\"P\"}",
                   "'text': expected the name of an output, found 'P'");
    expect_refused("{\"prompt\":\"N\",\"text\":\"T\"}",
                   "'prompt': expected one of TYPE_STRING, found 'N' of TYPE_INT32");
    expect_refused("{\"prompt\":\"P\",\"text\":\"T\",\"stream\":\"N\"}",
                   "'stream': expected one of TYPE_BOOL");
    expect_refused("{\"prompt\":\"P\",\"text\":\"T\",\"prompt_tokens\":\"E\"}",
                   "'prompt_tokens': expected one of TYPE_INT32, TYPE_INT64");
    expect_refused("{\"prompt\":\"P\",\"text\":\"T\",\"inputs\":[]}",
                   "'inputs': expected an object, found array");
    expect_refused("{\"prompt\":\"P\",\"text\":\"T\",\"inputs\":{\"seed\":\"X\"}}",
                   "'seed': expected the name of an input, found 'X'");
    expect_refused("{\"prompt\":\"P\",\"text\":\"T\",\"inputs\":{},\"inputs\":{}}",
                   "'inputs' is given twice");
    expect_refused("{\"prompt\":\"P\",\"text\":\"T\",\"defaults\":7}",
                   "'defaults': expected an object, found uint");
    expect_refused("{\"prompt\":\"P\",\"text\":\"T\",\"defaults\":{\"seed\":7}}",
                   "'defaults': expected members of 'inputs', found 'seed'");
    expect_refused("{\"prompt\":\"P\",\"text\":\"T\",\"other\":\"N\"}", "found 'other'");
}

UNIT_MAIN(UNIT(a_model_without_it_serves_nothing), UNIT(all_of_it), UNIT(who_serves_what),
          UNIT(what_is_wrong_is_said))
