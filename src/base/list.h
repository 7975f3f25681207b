#pragma once
/* Intrusive doubly linked lists. The head is a node too; an empty list points at itself. No
 * memory, no locks. */
#include <stdbool.h>
#include <stddef.h>

struct list {
    struct list *next;
    struct list *prev;
};

/* LIST_ITEM - the object of `type` whose field `member` is the node. */
#define LIST_ITEM(node, type, member) ((type *)(void *)((char *)(node)-offsetof(type, member)))

/* LIST_EACH - walk a list; the body may remove the current node. */
#define LIST_EACH(it, head)                                                   \
    for (struct list *it = (head)->next, *it##_next = it->next; it != (head); \
         it = it##_next, it##_next = it->next)

static inline void list_init(struct list *l)
{
    l->next = l;
    l->prev = l;
}

static inline bool list_empty(const struct list *l)
{
    return l->next == l;
}

/* list_insert_before - put node before `at`; with `at` a head this appends. */
static inline void list_insert_before(struct list *at, struct list *node)
{
    node->next = at;
    node->prev = at->prev;
    at->prev->next = node;
    at->prev = node;
}

static inline void list_append(struct list *head, struct list *node)
{
    list_insert_before(head, node);
}

/* list_remove - unlink; the node then is an empty list, so removing it again does no harm. */
static inline void list_remove(struct list *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
    list_init(node);
}

/* list_pop - unlink and return the first node, NULL when empty. */
static inline struct list *list_pop(struct list *head)
{
    if (list_empty(head))
        return NULL;
    struct list *first = head->next;
    list_remove(first);
    return first;
}

/* list_splice - move every node of `from` to the end of `to`. */
static inline void list_splice(struct list *to, struct list *from)
{
    if (list_empty(from))
        return;
    from->next->prev = to->prev;
    to->prev->next = from->next;
    from->prev->next = to;
    to->prev = from->prev;
    list_init(from);
}
