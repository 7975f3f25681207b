/* Graphs: what a stream was told while it was recorded. Nothing of it is done then; a launch queues
 * all of it, with the addresses that it had. */
#include "standin_stream.h"

#include <stdlib.h>

#define GRAPH_MAGIC 0x47524150u

struct cuda_graph {
    unsigned magic;
    bool spoilt;
    struct standin_operation *first, **last;
};

/* The same with a magic number of its own. */
struct cuda_graph_exec {
    struct cuda_graph graph;
};

static _Thread_local struct cuda_graph *recording; /* of this thread */

int standin_recording(void)
{
    if (!recording)
        return CUDA_SUCCESS;
    recording->spoilt = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

static void add(struct cuda_graph *g, const struct standin_operation *o)
{
    struct standin_operation *copy = malloc(sizeof(*copy));
    *copy = *o;
    copy->next = NULL;
    *g->last = copy;
    g->last = &copy->next;
}

bool standin_graph_takes(struct cuda_stream *s, const struct standin_operation *o)
{
    if (s->recorded)
        add(s->recorded, o);
    return s->recorded != NULL;
}

static void clear(struct cuda_graph *g)
{
    while (g->first) {
        struct standin_operation *o = g->first;
        g->first = o->next;
        free(o);
    }
    g->magic = 0;
    free(g);
}

int cuStreamBeginCapture_v2(struct cuda_stream *handle, int mode)
{
    int rc = standin_begin(STANDIN_cuStreamBeginCapture_v2);
    if (rc)
        return rc;
    struct cuda_stream *s = standin_stream_of(handle, &rc);
    if (!s)
        return standin_end(rc);
    if (!handle || mode != CUDA_CAPTURE_THREAD || recording || s->recorded)
        return standin_end(
            standin_wrong(CUDA_ERROR_INVALID_VALUE, "a recording that cannot begin"));
    struct cuda_graph *g = calloc(1, sizeof(*g));
    *g = (struct cuda_graph){.magic = GRAPH_MAGIC, .last = &g->first};
    recording = s->recorded = g;
    return standin_end(CUDA_SUCCESS);
}

/* A recording that was spoilt ends without a graph. */
int cuStreamEndCapture(struct cuda_stream *handle, struct cuda_graph **ret)
{
    int rc = standin_begin(STANDIN_cuStreamEndCapture);
    if (rc)
        return rc;
    struct cuda_stream *s = standin_stream_of(handle, &rc);
    if (!s)
        return standin_end(rc);
    struct cuda_graph *g = s->recorded;
    if (!g || g != recording)
        return standin_end(
            standin_wrong(CUDA_ERROR_INVALID_VALUE, "a recording ends that did not begin"));
    recording = s->recorded = NULL;
    *ret = g->spoilt ? NULL : g;
    if (g->spoilt) {
        clear(g);
        return standin_end(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    }
    standin_live(STANDIN_GRAPH, 1);
    return standin_end(CUDA_SUCCESS);
}

int cuGraphInstantiateWithFlags(struct cuda_graph_exec **ret, struct cuda_graph *g,
                                unsigned long long flags)
{
    int rc = standin_begin(STANDIN_cuGraphInstantiateWithFlags);
    if (rc)
        return rc;
    if (flags || g->magic != GRAPH_MAGIC)
        return standin_end(standin_wrong(CUDA_ERROR_INVALID_VALUE, "a graph that is none"));
    struct cuda_graph_exec *made = calloc(1, sizeof(*made));
    made->graph = (struct cuda_graph){.magic = ~GRAPH_MAGIC, .last = &made->graph.first};
    for (struct standin_operation *o = g->first; o; o = o->next)
        add(&made->graph, o);
    standin_live(STANDIN_GRAPH, 1);
    *ret = made;
    return standin_end(CUDA_SUCCESS);
}

static int graph_end(struct cuda_graph *g, unsigned magic)
{
    if (g->magic != magic)
        return standin_wrong(CUDA_ERROR_INVALID_VALUE, "a graph that is none");
    clear(g);
    standin_live(STANDIN_GRAPH, -1);
    return CUDA_SUCCESS;
}

int cuGraphDestroy(struct cuda_graph *g)
{
    int rc = standin_begin(STANDIN_cuGraphDestroy);
    return rc ? rc : standin_end(graph_end(g, GRAPH_MAGIC));
}

int cuGraphExecDestroy(struct cuda_graph_exec *e)
{
    int rc = standin_begin(STANDIN_cuGraphExecDestroy);
    return rc ? rc : standin_end(graph_end(&e->graph, ~GRAPH_MAGIC));
}

int cuGraphLaunch(struct cuda_graph_exec *e, struct cuda_stream *handle)
{
    int rc = standin_begin(STANDIN_cuGraphLaunch);
    if (rc)
        return rc;
    struct cuda_stream *s = standin_stream_of(handle, &rc);
    if (!s || e->graph.magic != ~GRAPH_MAGIC)
        return standin_end(s ? standin_wrong(CUDA_ERROR_INVALID_VALUE, "a graph that is none")
                             : rc);
    for (struct standin_operation *o = e->graph.first; o && !rc; o = o->next) {
        struct standin_operation now = *o;
        struct standin_block *was[2] = {o->blocks[0], o->blocks[1]};
        if (!now.after)
            rc = standin_resolve_both(&now);
        if (!rc && (now.blocks[0] != was[0] || now.blocks[1] != was[1]))
            rc = standin_wrong(CUDA_ERROR_INVALID_VALUE, "a graph uses memory that was freed");
        if (!rc)
            standin_enqueue(s, &now);
    }
    return standin_end(rc);
}
