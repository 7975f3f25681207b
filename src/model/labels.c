#include "model/labels.h"

#include "base/mem.h"

#include <stdatomic.h>
#include <string.h>

struct labels {
    atomic_uint refs; /* the last unref acquires what the others released */
    char *text;       /* the whole file, each line ended by NUL */
    uint32_t *start;  /* offset of each line */
    uint32_t count;
};

/* count_lines - a last line without a line break counts; a line break at the end starts no
 * further line. */
static uint32_t count_lines(const char *text, size_t len)
{
    uint32_t lines = 0;
    for (const char *p = text, *end = text + len; p < end; lines++) {
        const char *eol = memchr(p, '\n', (size_t)(end - p));
        p = eol ? eol + 1 : end;
    }
    return lines;
}

static struct err *split(struct labels *l, size_t len, const char *file)
{
    size_t at = 0;
    for (uint32_t i = 0; i < l->count; i++) {
        char *line = l->text + at;
        char *eol = memchr(line, '\n', len - at);
        size_t n = eol ? (size_t)(eol - line) : len - at;
        l->start[i] = (uint32_t)at;
        at += n + 1;
        if (n > LABELS_MAX_LINE)
            return err_new(STATUS_INVALID_ARG,
                           "%s:%u: expected a label of at most %zu bytes, found %zu", file, i + 1,
                           LABELS_MAX_LINE, n);
        if (memchr(line, 0, n))
            return err_new(STATUS_INVALID_ARG, "%s:%u: expected a label without zero bytes", file,
                           i + 1);
        line[n] = '\0';
        if (n && line[n - 1] == '\r')
            line[n - 1] = '\0';
    }
    return NULL;
}

struct err *labels_parse(const char *text, size_t len, const char *file, struct labels **ret)
{
    if (len > LABELS_MAX_BYTES)
        return err_new(STATUS_INVALID_ARG, "%s: expected at most %zu bytes of labels, found %zu",
                       file, LABELS_MAX_BYTES, len);
    struct labels *l = MEM_NEW(struct labels);
    atomic_init(&l->refs, 1);
    l->count = count_lines(text, len);
    l->text = mem_try_alloc(len + 1, 8);
    l->start = mem_try_alloc(mem_array_bytes(l->count, sizeof(*l->start)), 8);
    struct err *e = NULL;
    if (!l->text || !l->start) {
        e = err_new(STATUS_UNAVAILABLE, "%s: no memory for %zu bytes of labels", file, len);
    } else {
        if (len)
            memcpy(l->text, text, len);
        l->text[len] = '\0';
        e = split(l, len, file);
    }
    if (e)
        labels_free(l);
    else
        *ret = l;
    return e;
}

struct labels *labels_ref(struct labels *l)
{
    atomic_fetch_add_explicit(&l->refs, 1, memory_order_relaxed);
    return l;
}

void labels_free(struct labels *l)
{
    if (!l || atomic_fetch_sub_explicit(&l->refs, 1, memory_order_acq_rel) != 1)
        return;
    mem_free(l->text);
    mem_free(l->start);
    mem_free(l);
}

uint32_t labels_count(const struct labels *l)
{
    return l->count;
}

const char *labels_get(const struct labels *l, uint64_t index)
{
    return index < l->count ? l->text + l->start[index] : NULL;
}
