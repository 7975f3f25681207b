#include "support/config_steps.h"

#include "model/config_check.h"
#include "model/config_fill.h"
#include "model/config_guess.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static void must(struct err *e)
{
    if (e)
        fail_msg("%s", err_message(e));
}

Inference__ModelConfig *config_steps_parse(const char *text)
{
    Inference__ModelConfig *config = NULL;
    must(config_parse_text(text, strlen(text), "config.pbtxt", &config));
    return config;
}

Inference__ModelConfig *config_steps_fill(const char *text)
{
    Inference__ModelConfig *config = config_steps_parse(text);
    must(config_guess_backend(config, "m", NULL, 0));
    config_fill_defaults(config, "m");
    return config;
}

static struct err *complete(Inference__ModelConfig *config, const char *name,
                            const struct config_groups_machine *machine)
{
    struct err *e = config_guess_backend(config, name, NULL, 0);
    if (!e) {
        config_fill_defaults(config, name);
        e = config_check_model(config, name, CONFIG_CHECK_PARTIAL);
    }
    if (!e)
        e = config_check_model(config, name, CONFIG_CHECK_FULL);
    if (e)
        return e;
    config_groups_fill(config, machine);
    return config_groups_check(config, machine);
}

const char *config_steps_error(const char *text, const struct config_groups_machine *machine)
{
    static char message[1024];
    Inference__ModelConfig *config = NULL;
    struct model_config *shared = NULL;
    struct err *e = config_parse_text(text, strlen(text), "config.pbtxt", &config);
    if (!e)
        e = complete(config, "m", machine);
    if (!e)
        e = config_compile(&config, &shared);
    snprintf(message, sizeof(message), "%s", e ? err_message(e) : "");
    err_free(e);
    config_free_proto(config);
    config_unref(shared);
    return message;
}

struct model_config *config_steps_load(const char *text)
{
    Inference__ModelConfig *config = config_steps_parse(text);
    struct model_config *shared = NULL;
    must(complete(config, *config->name ? config->name : "m", NULL));
    must(config_compile(&config, &shared));
    assert_null(config);
    return shared;
}
