#include "net/forward.h"

#include "base/mem.h"
#include "infer/request.h"
#include "infer/request_text.h"
#include "os/dl.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#define LIBRARY "libpcre2-8.so.0"

/* Limits of the work for one match; above them it counts as no match. */
#define MATCH_LIMIT 20000u
#define DEPTH_LIMIT 1000u

/* The functions and constants of the library's interface that are used here. */
#define OPTION_CASELESS   0x00000008u
#define OPTION_NEVER_UTF  0x00001000u
#define OPTION_NEVER_BYTE 0x00100000u /* no \C */
struct pcre {
    void *(*compile)(const uint8_t *pattern, size_t len, uint32_t options, int *ret_code,
                     size_t *ret_at, void *context);
    void (*code_free)(void *code);
    int (*match)(const void *code, const uint8_t *subject, size_t len, size_t from,
                 uint32_t options, void *data, void *context);
    void *(*data_create)(uint32_t pairs, void *context);
    void (*data_free)(void *data);
    void *(*context_create)(void *general);
    void (*context_free)(void *context);
    int (*set_match_limit)(void *context, uint32_t limit);
    int (*set_depth_limit)(void *context, uint32_t limit);
    int (*error_text)(int code, uint8_t *to, size_t room);
};

struct forward {
    struct pcre pcre;
    struct dl *library;
    void *code;
    void *context;
};

static bool forward_find_functions(struct dl *d, struct pcre *p)
{
    const struct dl_function wanted[] = {
        {"pcre2_compile_8", &p->compile},
        {"pcre2_code_free_8", &p->code_free},
        {"pcre2_match_8", &p->match},
        {"pcre2_match_data_create_8", &p->data_create},
        {"pcre2_match_data_free_8", &p->data_free},
        {"pcre2_match_context_create_8", &p->context_create},
        {"pcre2_match_context_free_8", &p->context_free},
        {"pcre2_set_match_limit_8", &p->set_match_limit},
        {"pcre2_set_depth_limit_8", &p->set_depth_limit},
        {"pcre2_get_error_message_8", &p->error_text},
    };
    size_t count = sizeof(wanted) / sizeof(*wanted);
    return dl_functions(d, wanted, count) == count;
}

static struct err *forward_compile(struct forward *f, const char *option, const char *pattern)
{
    int code;
    size_t at;
    f->code =
        f->pcre.compile((const uint8_t *)pattern, strlen(pattern),
                        OPTION_CASELESS | OPTION_NEVER_UTF | OPTION_NEVER_BYTE, &code, &at, NULL);
    f->context = f->pcre.context_create(NULL);
    if (!f->code) {
        uint8_t text[128] = "";
        f->pcre.error_text(code, text, sizeof(text));
        return err_new(STATUS_INVALID_ARG,
                       "option --%s: expected a regular expression, found '%s': %s, at character "
                       "%zu",
                       option, pattern, (char *)text, at + 1);
    }
    if (!f->context)
        return err_new(STATUS_UNAVAILABLE, "no memory for a regular expression");
    f->pcre.set_match_limit(f->context, MATCH_LIMIT);
    f->pcre.set_depth_limit(f->context, DEPTH_LIMIT);
    return NULL;
}

struct err *forward_new(const char *option, const char *pattern, struct forward **ret)
{
    *ret = NULL;
    if (!pattern || !*pattern)
        return NULL;
    struct forward *f = MEM_NEW(struct forward);
    struct err *e = dl_open(LIBRARY, &f->library);
    if (e)
        e = err_recode(err_wrap(e, "option --%s", option), STATUS_UNSUPPORTED);
    else if (!forward_find_functions(f->library, &f->pcre))
        e = err_new(STATUS_UNSUPPORTED, "option --%s: " LIBRARY " lacks a function", option);
    else
        e = forward_compile(f, option, pattern);
    if (e) {
        forward_free(f);
        return e;
    }
    *ret = f;
    return NULL;
}

/* True for reserved names, in upper or lower case: headers ignore case, and proxies change it. */
static bool is_reserved(const char *name)
{
    static const char *const names[] = {"sequence_id",       "sequence_start", "sequence_end",
                                        "priority",          "timeout",        "headers",
                                        "binary_data_output"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (strcasecmp(names[i], name) == 0)
            return true;
    return strncasecmp(name, "triton_", 7) == 0;
}

struct err *forward_add(const struct forward *f, const char *headers, size_t len, struct request *r)
{
    if (!f || !len)
        return NULL;
    void *data = f->pcre.data_create(1, NULL);
    if (!data)
        return err_new(STATUS_UNAVAILABLE, "no memory to look at headers");
    struct err *e = NULL;
    for (const char *name = headers, *end = headers + len; !e && name < end;) {
        size_t name_len = strlen(name);
        const char *value = name + name_len + 1;
        size_t value_len = strlen(value);
        bool matches =
            f->pcre.match(f->code, (const uint8_t *)name, name_len, 0, 0, data, f->context) >= 0;
        if (matches && is_reserved(name))
            e = err_new(STATUS_INVALID_ARG,
                        "Header '%s' is reserved for Triton usage and cannot be forwarded.", name);
        else if (matches)
            e = request_text_room(r, name_len + value_len);
        if (matches && !e)
            param_add_string(&r->params, &r->arena, name, name_len, value, value_len);
        name = value + value_len + 1;
    }
    f->pcre.data_free(data);
    return e;
}

void forward_free(struct forward *f)
{
    if (!f)
        return;
    if (f->code)
        f->pcre.code_free(f->code);
    if (f->context)
        f->pcre.context_free(f->context);
    if (f->library)
        dl_close(f->library);
    mem_free(f);
}
