/* Reads ModelConfig texts for the Python tests of this folder, which ask protobuf's own parsers and
 * the reference the same.
 *
 * stdin:  any number of records: a letter, the length in decimal, LF, that many bytes.
 *         t, T = text format; j, J = JSON; m = the name of a model directory, LF, the names in its
 *         version directory separated by blanks, LF, config.pbtxt: the whole way from the text to
 *         the served configuration, on a machine without GPU
 * stdout: for each one record of the same form.
 *         p = accepted, the message in protobuf wire format (for t, j); J = accepted, as JSON (for
 *         T, J, m); e = the error */
#include "base/mem.h"
#include "codec/pb_field.h"
#include "model/config.h"
#include "model/config_check.h"
#include "model/config_fill.h"
#include "model/config_groups.h"
#include "model/config_guess.h"
#include "proto/model_config.pb-c.h"

#include <stdio.h>
#include <string.h>

static void answer(char kind, const void *bytes, size_t len)
{
    printf("%c%zu\n", kind, len);
    fwrite(bytes, 1, len, stdout);
    fflush(stdout);
}

static struct err *read_config(char kind, const char *text, size_t len,
                               Inference__ModelConfig **ret)
{
    if (kind == 't' || kind == 'T')
        return config_parse_text(text, len, "config.pbtxt", ret);
    return config_parse_json(text, len, ret);
}

#define MAX_ENTRIES 64

/* complete - what loading a model does with its configuration. */
static struct err *complete(Inference__ModelConfig *config, const char *model, char *names)
{
    const char *entries[MAX_ENTRIES];
    size_t count = 0;
    for (char *save = NULL, *name = strtok_r(names, " ", &save); name && count < MAX_ENTRIES;
         name = strtok_r(NULL, " ", &save))
        entries[count++] = name;
    struct err *e = config_guess_backend(config, model, entries, count);
    if (e)
        return e;
    config_fill_defaults(config, model);
    e = config_check_model(config, model, CONFIG_CHECK_PARTIAL);
    if (!e)
        e = config_check_model(config, model, CONFIG_CHECK_FULL);
    if (e)
        return e;
    config_groups_fill(config, NULL);
    return config_groups_check(config, NULL);
}

static struct err *serve_config(char *record, size_t len, Inference__ModelConfig **ret)
{
    char *names = memchr(record, '\n', len);
    char *text = names ? memchr(names + 1, '\n', len - (size_t)(names + 1 - record)) : NULL;
    if (!text)
        return err_new(STATUS_INVALID_ARG, "expected two lines before the text");
    *names++ = '\0';
    *text++ = '\0';
    Inference__ModelConfig *config = NULL;
    struct err *e = config_parse_text(text, len - (size_t)(text - record), "config.pbtxt", &config);
    if (e)
        return e;
    struct model_config *shared = NULL;
    e = complete(config, record, names);
    if (!e)
        e = config_compile(&config, &shared);
    if (!e)
        *ret = config_copy_proto(shared->proto);
    config_unref(shared);
    config_free_proto(config);
    return e;
}

static void handle(char kind, char *text, size_t len)
{
    Inference__ModelConfig *config = NULL;
    struct err *e =
        kind == 'm' ? serve_config(text, len, &config) : read_config(kind, text, len, &config);
    if (e) {
        answer('e', err_message(e), strlen(err_message(e)));
        err_free(e);
        return;
    }
    if (kind == 't' || kind == 'j') {
        size_t n = inference__model_config__get_packed_size(config);
        uint8_t *wire = mem_alloc(n);
        inference__model_config__pack(config, wire);
        answer('p', wire, n);
        mem_free(wire);
    } else {
        size_t n;
        char *json = config_print_json(config, &n);
        answer('J', json, n);
        mem_free(json);
    }
    config_free_proto(config);
}

int main(void)
{
    char kind;
    size_t len;
    while (scanf("%c%zu", &kind, &len) == 2 && getchar() == '\n') {
        /* Exactly as large as the text, so that a sanitizer sees any read past its end. */
        char *text = mem_alloc(len);
        if (fread(text, 1, len, stdin) != len)
            return 1;
        handle(kind, text, len);
        mem_free(text);
    }
    return 0;
}
