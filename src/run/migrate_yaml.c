#include "run/migrate_yaml.h"

#include "os/dl.h"
#include "run/migrate_words.h"

#include <stdbool.h>
#include <string.h>
#include <yaml.h>

#define LIBRARY "libyaml-0.so.2"

/* The library's time grows with the square of both. */
#define MAX_DEPTH   100
#define MAX_ANCHORS 1000 /* and aliases */

/* The functions of the library. */
struct yaml {
    struct dl *dl;
    __typeof__(&yaml_parser_initialize) open;
    __typeof__(&yaml_parser_set_input_string) input;
    __typeof__(&yaml_parser_parse) parse;
    __typeof__(&yaml_event_delete) forget;
    __typeof__(&yaml_parser_load) load;
    __typeof__(&yaml_parser_delete) close;
    __typeof__(&yaml_document_get_root_node) root;
    __typeof__(&yaml_document_get_node) node;
    __typeof__(&yaml_document_delete) drop;
};

static struct err *yaml_open(struct yaml *y)
{
    const struct dl_function wanted[] = {
        {"yaml_parser_initialize", &y->open}, {"yaml_parser_set_input_string", &y->input},
        {"yaml_parser_parse", &y->parse},     {"yaml_event_delete", &y->forget},
        {"yaml_parser_load", &y->load},       {"yaml_parser_delete", &y->close},
        {"yaml_document_get_node", &y->node}, {"yaml_document_get_root_node", &y->root},
        {"yaml_document_delete", &y->drop},
    };
    size_t count = sizeof(wanted) / sizeof(*wanted);
    struct err *e = dl_open(LIBRARY, &y->dl);
    if (!e && dl_functions(y->dl, wanted, count) == count)
        return NULL;
    err_free(e);
    return err_new(STATUS_UNSUPPORTED, "reading YAML needs " LIBRARY ", which is not on this "
                                       "machine: install it (package libyaml-0-2), or give the "
                                       "command line behind --");
}

static bool node_is(const yaml_node_t *n, const char *text)
{
    return n && n->type == YAML_SCALAR_NODE && n->data.scalar.length == strlen(text) &&
           memcmp(n->data.scalar.value, text, n->data.scalar.length) == 0;
}

static yaml_node_t *value_of_key(const struct yaml *y, yaml_document_t *d, const yaml_node_t *map,
                                 const char *key)
{
    for (yaml_node_pair_t *p = map->data.mapping.pairs.start; p < map->data.mapping.pairs.top; p++)
        if (node_is(y->node(d, p->key), key))
            return y->node(d, p->value);
    return NULL;
}

static void add_value(const struct yaml *y, yaml_document_t *d, const yaml_node_t *n,
                      struct migrate_words *w)
{
    if (n && n->type == YAML_SCALAR_NODE)
        migrate_words_split(w, (const char *)n->data.scalar.value, n->data.scalar.length);
    if (!n || n->type != YAML_SEQUENCE_NODE)
        return;
    for (yaml_node_item_t *i = n->data.sequence.items.start; i < n->data.sequence.items.top; i++) {
        const yaml_node_t *item = y->node(d, *i);
        if (item && item->type == YAML_SCALAR_NODE)
            migrate_words_add(w, (const char *)item->data.scalar.value, item->data.scalar.length);
    }
}

/* The keys in the order in which their words are run: Compose has the first two, Kubernetes the
 * last two. */
static void look_at_mapping(const struct yaml *y, yaml_document_t *d, const yaml_node_t *map,
                            migrate_yaml_fn found, void *arg)
{
    static const char *const keys[] = {"entrypoint", "command", "args"};
    struct migrate_words words = {0};
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
        add_value(y, d, value_of_key(y, d, map, keys[i]), &words);
    found(arg, &words, map->start_mark.line + 1);
    migrate_words_fini(&words);
}

static void look_at_document(const struct yaml *y, yaml_document_t *d, migrate_yaml_fn found,
                             void *arg)
{
    for (yaml_node_t *n = d->nodes.start; n < d->nodes.top; n++)
        if (n->type == YAML_MAPPING_NODE)
            look_at_mapping(y, d, n, found, arg);
}

static struct err *yaml_error(const yaml_parser_t *p)
{
    return err_new(STATUS_INVALID_ARG, "line %zu, column %zu: %s", p->problem_mark.line + 1,
                   p->problem_mark.column + 1, p->problem ? p->problem : "no memory");
}

/* Looks at one event of the file. */
static struct err *migrate_yaml_bound_event(const yaml_event_t *event, unsigned *depth,
                                            unsigned *anchors)
{
    const yaml_event_type_t type = event->type;
    bool list = type == YAML_SEQUENCE_START_EVENT, map = type == YAML_MAPPING_START_EVENT;
    *depth += list || map;
    *depth -= type == YAML_SEQUENCE_END_EVENT || type == YAML_MAPPING_END_EVENT;
    *anchors += type == YAML_ALIAS_EVENT || (list && event->data.sequence_start.anchor) ||
                (map && event->data.mapping_start.anchor) ||
                (type == YAML_SCALAR_EVENT && event->data.scalar.anchor);
    if (*depth <= MAX_DEPTH && *anchors <= MAX_ANCHORS)
        return NULL;
    return err_new(STATUS_INVALID_ARG, "line %zu, column %zu: expected at most %d %s",
                   event->start_mark.line + 1, event->start_mark.column + 1,
                   *depth > MAX_DEPTH ? MAX_DEPTH : MAX_ANCHORS,
                   *depth > MAX_DEPTH ? "lists and mappings in each other" : "anchors and aliases");
}

/* Looks at the bounds of the whole file before it is loaded. */
static struct err *migrate_yaml_bound(const struct yaml *y, yaml_parser_t *p)
{
    struct err *e = NULL;
    unsigned depth = 0, anchors = 0;
    for (bool more = true; more && !e;) {
        yaml_event_t event;
        if (!y->parse(p, &event))
            return yaml_error(p);
        e = migrate_yaml_bound_event(&event, &depth, &anchors);
        more = event.type != YAML_STREAM_END_EVENT;
        y->forget(&event);
    }
    return e;
}

static struct err *read_documents(const struct yaml *y, yaml_parser_t *p, migrate_yaml_fn found,
                                  void *arg)
{
    for (bool more = true; more;) {
        yaml_document_t d;
        if (!y->load(p, &d))
            return yaml_error(p);
        more = y->root(&d) != NULL;
        look_at_document(y, &d, found, arg);
        y->drop(&d);
    }
    return NULL;
}

struct err *migrate_yaml_read(const char *text, size_t len, migrate_yaml_fn found, void *arg)
{
    struct yaml y = {0};
    struct err *e = yaml_open(&y);
    for (int pass = 0; pass < 2 && !e; pass++) {
        yaml_parser_t p;
        if (!y.open(&p)) {
            e = err_new(STATUS_UNAVAILABLE, "no memory to read YAML");
            break;
        }
        y.input(&p, (const unsigned char *)text, len);
        e = pass ? read_documents(&y, &p, found, arg) : migrate_yaml_bound(&y, &p);
        y.close(&p);
    }
    if (y.dl)
        dl_close(y.dl);
    return e;
}
