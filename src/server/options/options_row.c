#include "server/options/options_row.h"

#include <string.h>

static const struct options_row rows[] = {
#define OPTION(group_, name_, kind_, field, standard_, value_, help_) \
    {.group = (group_),                                               \
     .name = (name_),                                                 \
     .kind = OPTIONS_KIND_##kind_,                                    \
     .offset = offsetof(struct options, field),                       \
     .standard = (standard_),                                         \
     .value = (value_),                                               \
     .help = (help_)},
#define TUNES(group_, name_, form, value_, help_) \
    {.group = (group_),                           \
     .name = (name_),                             \
     .kind = OPTIONS_KIND_TUNES,                  \
     .standard = (form),                          \
     .value = (value_),                           \
     .help = (help_)},
#include "server/options/options.def"
#undef OPTION
#undef TUNES
};

#define ROW_COUNT (sizeof(rows) / sizeof(rows[0]))

const struct options_row *options_row_all(size_t *ret_count)
{
    *ret_count = ROW_COUNT;
    return rows;
}

const struct options_row *options_row_find(const char *name, size_t len)
{
    for (size_t i = 0; i < ROW_COUNT; i++)
        if (strlen(rows[i].name) == len && memcmp(rows[i].name, name, len) == 0)
            return &rows[i];
    return NULL;
}

const struct options_row *options_row_abbreviated(const char *name, size_t len,
                                                  const struct options_row **ret_other)
{
    const struct options_row *found = NULL;
    *ret_other = NULL;
    for (size_t i = 0; i < ROW_COUNT; i++) {
        if (len == 0 || strncmp(rows[i].name, name, len) != 0)
            continue;
        if (found) {
            *ret_other = &rows[i];
            return NULL;
        }
        found = &rows[i];
    }
    return found;
}

#define MAX_NAME 64

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The number of characters to add, remove, replace or swap with a neighbour. Both lengths are
 * within MAX_NAME. */
static size_t options_row_distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
    size_t d[3][MAX_NAME + 1];
    for (size_t k = 0; k <= b_len; k++)
        d[0][k] = k;
    for (size_t i = 1; i <= a_len; i++) {
        size_t *row = d[i % 3], *up = d[(i - 1) % 3], *above = d[(i + 1) % 3];
        row[0] = i;
        for (size_t k = 1; k <= b_len; k++) {
            size_t best = least(up[k] + 1, row[k - 1] + 1);
            best = least(best, up[k - 1] + (a[i - 1] != b[k - 1]));
            if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
                best = least(best, above[k - 2] + 1);
            row[k] = best;
        }
    }
    return d[a_len % 3][b_len];
}

const char *options_row_nearest(const char *name, size_t len)
{
    if (len > MAX_NAME)
        return NULL;
    const char *nearest = NULL;
    size_t closest = len / 3 > 2 ? len / 3 + 1 : 3; /* a larger distance is not a typing error */
    for (size_t i = 0; i < ROW_COUNT; i++) {
        size_t d = options_row_distance(name, len, rows[i].name, strlen(rows[i].name));
        if (d < closest) {
            closest = d;
            nearest = rows[i].name;
        }
    }
    return nearest;
}

void options_row_warn(const struct options_row *row, struct options *o)
{
    if (row->kind == OPTIONS_KIND_TUNES)
        options_value_warn(o, "option --%s does nothing here: %s", row->name, row->help);
    else if (strcmp(row->group, "Deprecated") == 0)
        options_value_warn(o, "'--%s' has been deprecated! %s", row->name, row->help);
}
