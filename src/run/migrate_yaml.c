#include "run/migrate_yaml.h"

#include "os/dl.h"
#include "run/migrate_words.h"

#include <stdbool.h>
#include <string.h>
#include <yaml.h>

#define LIBRARY "libyaml-0.so.2"

/* The functions of the library. */
struct yaml {
    struct dl *dl;
    __typeof__(&yaml_parser_initialize) open;
    __typeof__(&yaml_parser_set_input_string) input;
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

/* A word of a list is one argument; a script for a shell among them has words of its own. */
static void add_item(struct migrate_words *w, const yaml_node_t *n)
{
    if (!n || n->type != YAML_SCALAR_NODE)
        return;
    const char *text = (const char *)n->data.scalar.value;
    if (strpbrk(text, " \n") && strstr(text, "tritonserver"))
        migrate_words_split(w, text, n->data.scalar.length);
    else
        migrate_words_add(w, text, n->data.scalar.length);
}

static void add_value(const struct yaml *y, yaml_document_t *d, const yaml_node_t *n,
                      struct migrate_words *w)
{
    if (n && n->type == YAML_SCALAR_NODE)
        migrate_words_split(w, (const char *)n->data.scalar.value, n->data.scalar.length);
    if (!n || n->type != YAML_SEQUENCE_NODE)
        return;
    for (yaml_node_item_t *i = n->data.sequence.items.start; i < n->data.sequence.items.top; i++)
        add_item(w, y->node(d, *i));
}

/* The keys in the order in which their words are run: Compose has the first two, Kubernetes the
 * last two. */
static void look_at_mapping(const struct yaml *y, yaml_document_t *d, const yaml_node_t *map,
                            migrate_yaml_fn found, void *arg)
{
    static const char *const keys[] = {"entrypoint", "command", "args"};
    struct migrate_words words = {0};
    size_t first, end;
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
        add_value(y, d, value_of_key(y, d, map, keys[i]), &words);
    if (migrate_words_server(&words, &first, &end))
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

static struct err *read_documents(const struct yaml *y, yaml_parser_t *p, migrate_yaml_fn found,
                                  void *arg)
{
    for (bool more = true; more;) {
        yaml_document_t d;
        if (!y->load(p, &d))
            return err_new(STATUS_INVALID_ARG, "line %zu, column %zu: %s", p->problem_mark.line + 1,
                           p->problem_mark.column + 1, p->problem ? p->problem : "no memory");
        more = y->root(&d) != NULL;
        look_at_document(y, &d, found, arg);
        y->drop(&d);
    }
    return NULL;
}

struct err *migrate_yaml_read(const char *text, size_t len, migrate_yaml_fn found, void *arg)
{
    struct yaml y = {0};
    yaml_parser_t p;
    struct err *e = yaml_open(&y);
    if (!e && !y.open(&p))
        e = err_new(STATUS_UNAVAILABLE, "no memory to read YAML");
    else if (!e) {
        y.input(&p, (const unsigned char *)text, len);
        e = read_documents(&y, &p, found, arg);
        y.close(&p);
    }
    if (y.dl)
        dl_close(y.dl);
    return e;
}
