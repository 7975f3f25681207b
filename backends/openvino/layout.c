#include "layout.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/berr.h"

/* Reads a whole text file, followed by NUL. */
static TRITONSERVER_Error *openvino_layout_read_text(const char *path, char **ret_text)
{
    FILE *file = fopen(path, "re");
    char *text = NULL;
    long size = -1;
    if (file && fseek(file, 0, SEEK_END) == 0)
        size = ftell(file);
    if (size >= 0 && fseek(file, 0, SEEK_SET) == 0)
        text = calloc((size_t)size + 1, 1);
    bool whole = text && fread(text, 1, (size_t)size, file) == (size_t)size;
    int reason = errno;
    if (file)
        fclose(file);
    if (!whole) {
        free(text);
        return berr_new(TRITONSERVER_ERROR_INTERNAL, "failed to read '%s': %s", path,
                        strerror(reason));
    }
    *ret_text = text;
    return NULL;
}

/* A part of the text: an element, or its first tag. */
struct span {
    const char *from, *to;
};

/* The first part inside a larger one that begins with `begin` and ends with `end`; from is NULL
 * if there is none. */
static struct span find_part(struct span whole, const char *begin, const char *end)
{
    struct span part = {NULL, NULL};
    size_t left = (size_t)(whole.to - whole.from);
    const char *from = memmem(whole.from, left, begin, strlen(begin));
    if (!from)
        return part;
    const char *to = memmem(from, (size_t)(whole.to - from), end, strlen(end));
    if (to)
        part = (struct span){from, to + strlen(end)};
    return part;
}

/* The next element of a kind after `last`, or the first. */
static struct span next_part(struct span whole, struct span last, const char *begin,
                             const char *end)
{
    if (last.from)
        whole.from = last.to;
    return find_part(whole, begin, end);
}

/* The element of a kind with this id; OpenVINO writes the id first. */
static struct span find_by_id(struct span whole, const char *kind, struct span id, const char *end)
{
    char begin[64];
    snprintf(begin, sizeof begin, "<%s id=\"%.*s\"", kind, (int)(id.to - id.from), id.from);
    return find_part(whole, begin, end);
}

/* The value of an attribute in the first tag. */
static struct span openvino_layout_value(struct span element, const char *name)
{
    char begin[64];
    struct span tag = find_part(element, "<", ">");
    size_t length = (size_t)snprintf(begin, sizeof begin, " %s=\"", name);
    struct span value = {NULL, NULL};
    const char *from =
        tag.from ? memmem(tag.from, (size_t)(tag.to - tag.from), begin, length) : NULL;
    const char *to = from ? memchr(from + length, '"', (size_t)(tag.to - from) - length) : NULL;
    if (to)
        value = (struct span){from + length, to};
    return value;
}

static bool says(struct span value, const char *word)
{
    size_t length = strlen(word);
    return value.from && (size_t)(value.to - value.from) >= length &&
           memcmp(value.from, word, length) == 0;
}

/* True if the layout of a layer's port begins with the batch, as in [N,C,H,W]. */
static bool batch_first(struct span text, struct span layer_id, struct span port_id)
{
    struct span layer = find_by_id(text, "layer", layer_id, "</layer>");
    struct span port = {NULL, NULL}, attribute = {NULL, NULL};
    if (layer.from)
        port = find_by_id(layer, "port", port_id, "</port>");
    if (port.from)
        attribute = find_part(port, "<attribute name=\"layout\"", ">");
    if (!attribute.from)
        return false;
    struct span layout = openvino_layout_value(attribute, "layout");
    return says(layout, "[N,") || says(layout, "[N]");
}

/* The same for an output: its layout is at the source of its value. */
static bool source_batch_first(struct span text, struct span result_id)
{
    struct span edge = {NULL, NULL};
    while ((edge = next_part(text, edge, "<edge ", ">")).from) {
        struct span to = openvino_layout_value(edge, "to-layer");
        if (to.from && to.to - to.from == result_id.to - result_id.from &&
            memcmp(to.from, result_id.from, (size_t)(to.to - to.from)) == 0)
            return batch_first(text, openvino_layout_value(edge, "from-layer"),
                               openvino_layout_value(edge, "from-port"));
    }
    return false;
}

/* True if the layouts of all inputs and outputs begin with the batch. They are layers of two
 * kinds. */
static bool all_batch_first(struct span text)
{
    static const char zero[] = "0";
    const struct span first_port = {zero, zero + 1};
    size_t count = 0;
    struct span layer = {NULL, NULL};
    while ((layer = next_part(text, layer, "<layer ", ">")).from) {
        struct span id = openvino_layout_value(layer, "id"),
                    type = openvino_layout_value(layer, "type");
        bool input = says(type, "Parameter"), output = says(type, "Result");
        if (!input && !output)
            continue;
        count++;
        if (!id.from || !(input ? batch_first(text, id, first_port) : source_batch_first(text, id)))
            return false;
    }
    return count > 0;
}

TRITONSERVER_Error *layout_has_batch(const struct model *model, bool *ret_has)
{
    const char *ending = strrchr(model->path, '.');
    *ret_has = false;
    if (!ending || strcmp(ending, ".xml") != 0)
        return NULL;
    char *text;
    TRITONSERVER_Error *err = openvino_layout_read_text(model->path, &text);
    if (err)
        return err;
    *ret_has = all_batch_first((struct span){text, text + strlen(text)});
    free(text);
    return NULL;
}

TRITONSERVER_Error *layout_has_state(const struct model *model, bool *ret_has)
{
    static const char before_xml[] = "\xEF\xBB\xBF \t\r\n", gguf[] = "GGUF";
    char begin[64] = "", *text;
    FILE *file = fopen(model->path, "re");
    if (file) { /* some formats are folders, of which nothing is read */
        begin[fread(begin, 1, sizeof begin - 1, file)] = '\0';
        fclose(file);
    }
    *ret_has = strncmp(begin, gguf, strlen(gguf)) == 0;
    if (begin[strspn(begin, before_xml)] != '<')
        return NULL;
    TRITONSERVER_Error *err = openvino_layout_read_text(model->path, &text);
    if (err)
        return err;
    *ret_has = strstr(text, "ReadValue") != NULL;
    free(text);
    return NULL;
}
