#include "http/openai/openai_render.h"

#include "base/strbuf.h"

#include <string.h>

struct err *openai_render_check(yyjson_val *messages)
{
    if (!yyjson_is_arr(messages) || !yyjson_arr_size(messages))
        return err_new(STATUS_INVALID_ARG, "'messages': expected a list of messages, found %s",
                       yyjson_is_arr(messages) ? "an empty one"
                       : messages              ? yyjson_get_type_desc(messages)
                                               : "none");
    size_t i, n;
    yyjson_val *message;
    yyjson_arr_foreach(messages, i, n, message)
    {
        if (!yyjson_is_obj(message))
            return err_new(STATUS_INVALID_ARG, "'messages[%zu]': expected an object, found %s", i,
                           yyjson_get_type_desc(message));
        if (!yyjson_is_str(yyjson_obj_get(message, "role")))
            return err_new(STATUS_INVALID_ARG, "'messages[%zu].role': expected a string", i);
    }
    return NULL;
}

static void render_string(yyjson_val *v, struct strbuf *to)
{
    strbuf_append(to, yyjson_get_str(v), yyjson_get_len(v));
}

static struct err *render_content(yyjson_val *content, size_t message, struct strbuf *to)
{
    if (!content || yyjson_is_null(content))
        return NULL;
    if (yyjson_is_str(content)) {
        render_string(content, to);
        return NULL;
    }
    size_t i, n;
    yyjson_val *part;
    yyjson_arr_foreach(content, i, n, part)
    {
        yyjson_val *text = yyjson_obj_get(part, "text");
        if (!yyjson_equals_str(yyjson_obj_get(part, "type"), "text") || !yyjson_is_str(text))
            return err_new(STATUS_INVALID_ARG,
                           "'messages[%zu].content[%zu]': expected a part of type 'text': this "
                           "model takes nothing else",
                           message, i);
        render_string(text, to);
    }
    return yyjson_is_arr(content)
               ? NULL
               : err_new(STATUS_INVALID_ARG,
                         "'messages[%zu].content': expected a string or a list of parts, found "
                         "%s",
                         message, yyjson_get_type_desc(content));
}

struct err *openai_render(yyjson_val *messages, struct strbuf *to)
{
    size_t i, n;
    yyjson_val *message;
    yyjson_arr_foreach(messages, i, n, message)
    {
        render_string(yyjson_obj_get(message, "role"), to);
        strbuf_puts(to, ": ");
        struct err *e = render_content(yyjson_obj_get(message, "content"), i, to);
        if (e)
            return e;
        strbuf_putc(to, '\n');
    }
    strbuf_puts(to, "assistant:");
    return NULL;
}
