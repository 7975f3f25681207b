#include "sequences/sequence_controls.h"

#include "base/mem.h"
#include "model/config.h"
#include "proto/model_config.pb-c.h"

#include <inttypes.h>
#include <string.h>

typedef Inference__ModelSequenceBatching__Control control_proto;
typedef Inference__ModelSequenceBatching__Control__Kind control_kind;

#define KIND(name) INFERENCE__MODEL_SEQUENCE_BATCHING__CONTROL__KIND__CONTROL_SEQUENCE_##name

/* One control input. START, END and READY have two possible values; CORRID does not use
 * `values`. */
struct control {
    const char *name; /* of the input; in the configuration */
    control_kind kind;
    enum datatype datatype;
    char values[2][8]; /* the bytes for false and for true */
};

struct sequence_controls {
    bool batched;
    uint32_t count;
    struct control *controls;
    const struct control *corrid; /* of these; NULL = the model does not read the id */
};

static const int64_t ones[] = {1, 1};

static void set_values(struct control *c, const control_proto *p)
{
    for (size_t i = 0; i < 2; i++) {
        if (p->n_int32_false_true) {
            c->datatype = DATATYPE_INT32;
            memcpy(c->values[i], &p->int32_false_true[i], sizeof(int32_t));
        } else if (p->n_fp32_false_true) {
            c->datatype = DATATYPE_FP32;
            memcpy(c->values[i], &p->fp32_false_true[i], sizeof(float));
        } else {
            c->datatype = DATATYPE_BOOL;
            c->values[i][0] = p->bool_false_true[i] != 0;
        }
    }
}

struct sequence_controls *sequence_controls_new(const struct model_config *config)
{
    const Inference__ModelSequenceBatching *s = config->proto->sequence_batching;
    struct sequence_controls *c = MEM_NEW(struct sequence_controls);
    c->batched = config->max_batch_size > 0;
    for (size_t i = 0; i < s->n_control_input; i++)
        c->count += (uint32_t)s->control_input[i]->n_control;
    c->controls = mem_zalloc(c->count * sizeof(*c->controls));
    size_t at = 0;
    for (size_t i = 0; i < s->n_control_input; i++)
        for (size_t k = 0; k < s->control_input[i]->n_control; k++) {
            const control_proto *p = s->control_input[i]->control[k];
            struct control *to = &c->controls[at++];
            to->name = s->control_input[i]->name;
            to->kind = p->kind;
            if (p->kind != KIND(CORRID)) {
                set_values(to, p);
                continue;
            }
            to->datatype = (enum datatype)p->data_type;
            c->corrid = to;
        }
    return c;
}

void sequence_controls_free(struct sequence_controls *c)
{
    if (!c)
        return;
    mem_free(c->controls);
    mem_free(c);
}

/* The correlation id in the form that the model wants: the low bytes of the number, or a string
 * with its length in front. */
static struct tensor_piece id_piece(const struct control *c, struct request *r, bool ready)
{
    struct tensor_piece piece = {.memory = BUF_MEMORY_CPU};
    if (c->datatype != DATATYPE_BYTES) {
        uint64_t id = ready && !r->correlation_string ? r->correlation_id : 0;
        char *to = arena_alloc(&r->arena, sizeof(id));
        memcpy(to, &id, sizeof(id)); /* little endian: the low bytes come first */
        piece.data = to;
        piece.size = datatype_bytes(c->datatype);
        return piece;
    }
    const char *id = ready && r->correlation_string ? r->correlation_string : "";
    uint32_t len = (uint32_t)strlen(id);
    char *to = arena_alloc(&r->arena, sizeof(len) + len);
    memcpy(to, &len, sizeof(len));
    memcpy(to + sizeof(len), id, len);
    piece.data = to;
    piece.size = sizeof(len) + len;
    return piece;
}

bool sequence_controls_want_text(const struct sequence_controls *c)
{
    return c->corrid && c->corrid->datatype == DATATYPE_BYTES;
}

struct err *sequence_controls_check(const struct sequence_controls *c, const struct request *r,
                                    const char *model)
{
    bool text = sequence_controls_want_text(c);
    if (!c->corrid || text == (r->correlation_string != NULL))
        return NULL;
    const char *type = datatype_config_name(c->corrid->datatype);
    if (text)
        return err_new(STATUS_INVALID_ARG,
                       "inference request for sequence %" PRIu64
                       " to model '%s' must specify a string as correlation ID, not a number: "
                       "control '%s' of the model has data type %s",
                       r->correlation_id, model, c->corrid->name, type);
    return err_new(STATUS_INVALID_ARG,
                   "inference request for sequence \"%s\" to model '%s' must specify a number as "
                   "correlation ID, not a string: control '%s' of the model has data type %s",
                   r->correlation_string, model, c->corrid->name, type);
}

static bool is_true(control_kind kind, uint32_t flags, bool ready)
{
    if (kind == KIND(READY))
        return ready;
    return ready && (flags & (kind == KIND(START) ? REQUEST_SEQUENCE_START : REQUEST_SEQUENCE_END));
}

void sequence_controls_add(const struct sequence_controls *c, struct request *r, bool ready)
{
    for (uint32_t i = 0; i < c->count; i++) {
        const struct control *each = &c->controls[i];
        struct tensor_piece piece = {
            .data = each->values[is_true(each->kind, r->flags, ready)],
            .size = datatype_bytes(each->datatype),
            .memory = BUF_MEMORY_CPU,
        };
        if (each->kind == KIND(CORRID))
            piece = id_piece(each, r, ready);
        struct tensor_input *in = request_add_input(
            r, each->name, strlen(each->name), each->datatype, ones, c->batched ? 2 : 1, &piece, 1);
        if (!in)
            /* the request already has the most inputs; the backend will report the missing one */
            return;
        in->model_shape = in->shape;
        in->model_rank = in->rank;
        in->elements = 1;
    }
}

void sequence_controls_again(const struct sequence_controls *c, struct request *r)
{
    struct tensor_input *first = &r->inputs[r->input_count - c->count];
    for (uint32_t i = 0; i < c->count; i++) {
        const struct control *each = &c->controls[i];
        if (each->kind == KIND(CORRID))
            continue;
        /* The piece lies in the request's arena and only the scheduler uses the request now, so
         * it may be written. */
        struct tensor_piece *piece = (struct tensor_piece *)(uintptr_t)first[i].pieces;
        piece->data = each->values[is_true(each->kind, r->flags, true)];
    }
}

uint32_t sequence_controls_count(const struct sequence_controls *c)
{
    return c->count;
}
