/* codec/infer_pb, codec/pb_wire: ModelInferRequest as protobuf-c and as other writers encode it,
 * read by ours. */
#include "codec/infer_pb.h"

#include "proto/grpc_service.pb-c.h"
#include "support/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CASES     400
#define MAX_ITEMS 4

typedef Inference__ModelInferRequest Message;
typedef Inference__ModelInferRequest__InferInputTensor Input;
typedef Inference__ModelInferRequest__InferRequestedOutputTensor Output;
typedef Inference__ModelInferRequest__ParametersEntry Entry;
typedef Inference__InferTensorContents Contents;
typedef Inference__InferParameter Parameter;

/* A generated request lives in an arena: protobuf-c only packs it. */
struct gen {
    struct arena arena;
    uint64_t random;
};

static uint64_t pick(struct gen *g, uint64_t n)
{
    return unit_random(&g->random) % n;
}

/* Numbers of every length on the wire. */
static uint64_t number(struct gen *g)
{
    return unit_random(&g->random) >> pick(g, 64);
}

static char *text(struct gen *g)
{
    static const char *const some[] = {
        "",
        "a",
        "INPUT0",
        "größe",
        "模型",
        "longer than what one byte of length can tell: "
        "0123456789012345678901234567890123456789012345678901234567890123456789"
        "0123456789012345678901234567890123456789",
    };
    const char *one = some[pick(g, 6)];
    return arena_strndup(&g->arena, one, strlen(one));
}

static Parameter *parameter(struct gen *g)
{
    Parameter *p = arena_alloc(&g->arena, sizeof(*p));
    inference__infer_parameter__init(p);
    p->parameter_choice_case = (Inference__InferParameter__ParameterChoiceCase)pick(g, 6);
    switch ((int)p->parameter_choice_case) {
    case INFER_PB_BOOL:
        p->bool_param = pick(g, 2) != 0;
        break;
    case INFER_PB_STRING:
        p->string_param = text(g);
        break;
    case INFER_PB_DOUBLE:
        p->double_param = (double)number(g) / 3;
        break;
    default:
        p->uint64_param = number(g);
        break;
    }
    return p;
}

/* Every map entry has another key, made of its index. All map entries of the schema have the
 * same layout. */
static size_t parameters(struct gen *g, void *ret_entries, const ProtobufCMessageDescriptor *type)
{
    size_t n = pick(g, MAX_ITEMS);
    Entry **entries = arena_alloc(&g->arena, (n + 1) * sizeof(*entries));
    for (size_t i = 0; i < n; i++) {
        char key[24];
        snprintf(key, sizeof(key), "key%zu", i);
        entries[i] = arena_alloc(&g->arena, sizeof(**entries));
        protobuf_c_message_init(type, entries[i]);
        entries[i]->key = arena_strndup(&g->arena, key, strlen(key));
        entries[i]->value = parameter(g);
    }
    memcpy(ret_entries, &entries, sizeof(entries));
    return n;
}

static void *numbers(struct gen *g, size_t n, size_t size)
{
    char *all = arena_alloc(&g->arena, (n + 1) * 8);
    for (size_t i = 0; i < n; i++) {
        uint64_t v = number(g);
        memcpy(all + i * size, &v, size);
    }
    return all;
}

static ProtobufCBinaryData bytes(struct gen *g)
{
    size_t n = pick(g, 200);
    return (ProtobufCBinaryData){n, numbers(g, n / 8 + 1, 8)};
}

static Contents *contents(struct gen *g)
{
    Contents *c = arena_alloc(&g->arena, sizeof(*c));
    inference__infer_tensor_contents__init(c);
    size_t n = pick(g, 40);
    switch (pick(g, 8)) {
    case 0:
        c->n_bool_contents = n;
        c->bool_contents = arena_zalloc(&g->arena, n * sizeof(*c->bool_contents) + 1);
        for (size_t i = 0; i < n; i++)
            c->bool_contents[i] = pick(g, 2) != 0;
        break;
    case 1:
        c->n_int_contents = n;
        c->int_contents = numbers(g, n, 4);
        break;
    case 2:
        c->n_int64_contents = n;
        c->int64_contents = numbers(g, n, 8);
        break;
    case 3:
        c->n_uint_contents = n;
        c->uint_contents = numbers(g, n, 4);
        break;
    case 4:
        c->n_uint64_contents = n;
        c->uint64_contents = numbers(g, n, 8);
        break;
    case 5:
        c->n_fp32_contents = n;
        c->fp32_contents = numbers(g, n, 4);
        break;
    case 6:
        c->n_fp64_contents = n;
        c->fp64_contents = numbers(g, n, 8);
        break;
    default:
        c->n_bytes_contents = n;
        c->bytes_contents = arena_alloc(&g->arena, (n + 1) * sizeof(*c->bytes_contents));
        for (size_t i = 0; i < n; i++)
            c->bytes_contents[i] = bytes(g);
        break;
    }
    return c;
}

static Message *message(struct gen *g)
{
    Message *m = arena_alloc(&g->arena, sizeof(*m));
    inference__model_infer_request__init(m);
    m->model_name = text(g);
    m->model_version = text(g);
    m->id = text(g);
    m->n_parameters = parameters(g, &m->parameters,
                                 &inference__model_infer_request__parameters_entry__descriptor);
    m->n_inputs = pick(g, MAX_ITEMS);
    m->inputs = arena_alloc(&g->arena, MAX_ITEMS * sizeof(*m->inputs));
    for (size_t i = 0; i < m->n_inputs; i++) {
        Input *in = m->inputs[i] = arena_alloc(&g->arena, sizeof(*in));
        inference__model_infer_request__infer_input_tensor__init(in);
        in->name = text(g);
        in->datatype = text(g);
        in->n_shape = pick(g, 7);
        in->shape = numbers(g, in->n_shape, 8);
        in->n_parameters = parameters(
            g, &in->parameters,
            &inference__model_infer_request__infer_input_tensor__parameters_entry__descriptor);
        in->contents = pick(g, 2) ? contents(g) : NULL;
    }
    m->n_outputs = pick(g, MAX_ITEMS);
    m->outputs = arena_alloc(&g->arena, MAX_ITEMS * sizeof(*m->outputs));
    for (size_t i = 0; i < m->n_outputs; i++) {
        Output *out = m->outputs[i] = arena_alloc(&g->arena, sizeof(*out));
        inference__model_infer_request__infer_requested_output_tensor__init(out);
        out->name = text(g);
        out->n_parameters = parameters(
            g, &out->parameters,
            &inference__model_infer_request__infer_requested_output_tensor__parameters_entry__descriptor);
    }
    m->n_raw_input_contents = pick(g, MAX_ITEMS);
    m->raw_input_contents = arena_alloc(&g->arena, MAX_ITEMS * sizeof(*m->raw_input_contents));
    for (size_t i = 0; i < m->n_raw_input_contents; i++)
        m->raw_input_contents[i] = bytes(g);
    return m;
}

static void same_text(struct infer_pb_slice got, const char *expected)
{
    assert_int_equal(got.len, strlen(expected));
    if (got.len)
        assert_memory_equal(got.data, expected, got.len);
}

static void same_params(const struct infer_pb_param *got, uint32_t count, const void *expected,
                        size_t n)
{
    Entry *const *entries = expected;
    assert_int_equal(count, n);
    for (size_t i = 0; i < n; i++, got = got->next) {
        const Parameter *p = entries[i]->value;
        same_text(got->name, entries[i]->key);
        assert_int_equal(got->choice, p->parameter_choice_case);
        if (got->choice == INFER_PB_STRING)
            same_text(got->string, p->string_param);
        else if (got->choice == INFER_PB_BOOL)
            assert_int_equal(got->truth, p->bool_param);
        else if (got->choice != INFER_PB_NONE)
            assert_true(got->bits == p->uint64_param);
    }
    assert_null(got);
}

static void same_typed(const struct infer_pb_contents *got, enum infer_pb_content kind,
                       uint32_t size, size_t n, const void *all)
{
    assert_int_equal(got->count[kind], n);
    assert_int_equal(infer_pb_content_bytes(got, kind, size), n * size);
    char *written = malloc(n * size + 1);
    infer_pb_content_write(got, kind, size, written);
    if (n)
        assert_memory_equal(written, all, n * size);
    free(written);
}

static void same_strings(const struct infer_pb_contents *got, const Contents *c)
{
    assert_int_equal(got->count[INFER_PB_STRINGS], c->n_bytes_contents);
    uint64_t total = infer_pb_content_bytes(got, INFER_PB_STRINGS, 0);
    char *written = malloc(total + 1);
    infer_pb_content_write(got, INFER_PB_STRINGS, 0, written);
    char *at = written;
    for (size_t i = 0; i < c->n_bytes_contents; i++) {
        uint32_t len;
        memcpy(&len, at, 4);
        assert_int_equal(len, c->bytes_contents[i].len);
        if (len)
            assert_memory_equal(at + 4, c->bytes_contents[i].data, len);
        at += 4 + len;
    }
    assert_ptr_equal(at, written + total);
    free(written);
}

static void same_contents(const struct infer_pb_contents *got, const Contents *c)
{
    assert_int_equal(got != NULL, c != NULL);
    if (!c)
        return;
    int8_t *bools = malloc(c->n_bool_contents + 1);
    for (size_t i = 0; i < c->n_bool_contents; i++)
        bools[i] = c->bool_contents[i] != 0;
    same_typed(got, INFER_PB_BOOLS, 1, c->n_bool_contents, bools);
    free(bools);
    same_typed(got, INFER_PB_INTS, 4, c->n_int_contents, c->int_contents);
    same_typed(got, INFER_PB_INT64S, 8, c->n_int64_contents, c->int64_contents);
    same_typed(got, INFER_PB_UINTS, 4, c->n_uint_contents, c->uint_contents);
    same_typed(got, INFER_PB_UINT64S, 8, c->n_uint64_contents, c->uint64_contents);
    same_typed(got, INFER_PB_FP32S, 4, c->n_fp32_contents, c->fp32_contents);
    same_typed(got, INFER_PB_FP64S, 8, c->n_fp64_contents, c->fp64_contents);
    same_strings(got, c);
}

static void same_request(const struct infer_pb_request *got, const Message *m)
{
    same_text(got->model_name, m->model_name);
    same_text(got->model_version, m->model_version);
    same_text(got->id, m->id);
    same_params(got->params, got->param_count, m->parameters, m->n_parameters);
    assert_int_equal(got->input_count, m->n_inputs);
    const struct infer_pb_tensor *t = got->inputs;
    for (size_t i = 0; i < m->n_inputs; i++, t = t->next) {
        same_text(t->name, m->inputs[i]->name);
        same_text(t->datatype, m->inputs[i]->datatype);
        assert_int_equal(t->rank, m->inputs[i]->n_shape);
        if (t->rank)
            assert_memory_equal(t->shape, m->inputs[i]->shape, t->rank * sizeof(*t->shape));
        same_params(t->params, t->param_count, m->inputs[i]->parameters,
                    m->inputs[i]->n_parameters);
        same_contents(t->contents, m->inputs[i]->contents);
    }
    assert_int_equal(got->output_count, m->n_outputs);
    t = got->outputs;
    for (size_t i = 0; i < m->n_outputs; i++, t = t->next) {
        same_text(t->name, m->outputs[i]->name);
        same_params(t->params, t->param_count, m->outputs[i]->parameters,
                    m->outputs[i]->n_parameters);
    }
    assert_int_equal(got->raw_count, m->n_raw_input_contents);
    const struct infer_pb_part *raw = got->raws;
    for (size_t i = 0; i < m->n_raw_input_contents; i++, raw = raw->next) {
        assert_int_equal(raw->bytes.len, m->raw_input_contents[i].len);
        if (raw->bytes.len)
            assert_memory_equal(raw->bytes.data, m->raw_input_contents[i].data, raw->bytes.len);
    }
}

/* Reads exactly len bytes: the sanitizer sees any byte behind them being touched. */
static enum infer_pb_result read_exact(const void *data, size_t len, struct arena *a,
                                       struct infer_pb_request *ret, uint8_t **ret_copy)
{
    *ret_copy = malloc(len ? len : 1);
    if (len)
        memcpy(*ret_copy, data, len);
    return infer_pb_read(*ret_copy, len, a, ret);
}

static void reads_what_protobuf_c_writes(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= CASES; seed++) {
        struct gen g = {.random = seed};
        arena_init(&g.arena, NULL, 0);
        Message *m = message(&g);
        size_t len = inference__model_infer_request__get_packed_size(m);
        uint8_t *packed = malloc(len + 1);
        inference__model_infer_request__pack(m, packed);
        struct infer_pb_request got;
        uint8_t *copy;
        assert_int_equal(read_exact(packed, len, &g.arena, &got, &copy), INFER_PB_OK);
        same_request(&got, m);
        free(copy);
        free(packed);
        arena_fini(&g.arena);
    }
}

/* Cut off at every byte it is either whole up to there, as protobuf-c reads it too, or
 * malformed. */
static void cut_anywhere(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct gen g = {.random = seed};
        arena_init(&g.arena, NULL, 0);
        Message *m = message(&g);
        size_t len = inference__model_infer_request__get_packed_size(m);
        uint8_t *packed = malloc(len + 1);
        inference__model_infer_request__pack(m, packed);
        for (size_t cut = 0; cut < len; cut++) {
            struct arena a;
            arena_init(&a, NULL, 0);
            struct infer_pb_request got;
            uint8_t *copy;
            enum infer_pb_result r = read_exact(packed, cut, &a, &got, &copy);
            Message *other = inference__model_infer_request__unpack(NULL, cut, packed);
            if (r == INFER_PB_OK && other)
                same_request(&got, other);
            assert_int_equal(r, other ? INFER_PB_OK : INFER_PB_MALFORMED);
            if (other)
                inference__model_infer_request__free_unpacked(other, NULL);
            infer_pb_raw_offset(copy, cut);
            free(copy);
            arena_fini(&a);
        }
        free(packed);
        arena_fini(&g.arena);
    }
}

/* Writes every kind into memory of exactly its size. */
static void write_all(const struct infer_pb_contents *c)
{
    static const uint32_t sizes[INFER_PB_CONTENTS] = {0, 1, 2, 8, 1, 8, 4, 8, 0};
    for (unsigned kind = INFER_PB_BOOLS; kind < INFER_PB_CONTENTS; kind++) {
        uint64_t n = infer_pb_content_bytes(c, kind, sizes[kind]);
        char *to = malloc(n ? n : 1);
        infer_pb_content_write(c, kind, sizes[kind], to);
        free(to);
    }
}

/* Random bytes changed: any answer will do, as long as nothing outside of the message is
 * touched. */
static void damaged(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= CASES; seed++) {
        struct gen g = {.random = seed};
        arena_init(&g.arena, NULL, 0);
        Message *m = message(&g);
        size_t len = inference__model_infer_request__get_packed_size(m);
        uint8_t *packed = malloc(len + 1);
        inference__model_infer_request__pack(m, packed);
        for (int i = 0; i < 4 && len; i++)
            packed[pick(&g, len)] = (uint8_t)pick(&g, 256);
        struct infer_pb_request got;
        uint8_t *copy;
        if (read_exact(packed, len, &g.arena, &got, &copy) == INFER_PB_OK)
            for (const struct infer_pb_tensor *t = got.inputs; t; t = t->next)
                if (t->contents)
                    write_all(t->contents);
        free(copy);
        free(packed);
        arena_fini(&g.arena);
    }
}

static enum infer_pb_result read_text(const char *wire, size_t len, struct arena *a,
                                      struct infer_pb_request *ret)
{
    arena_init(a, NULL, 0);
    return infer_pb_read(wire, len, a, ret);
}

#define READ(wire, a, ret) read_text((wire), sizeof(wire) - 1, (a), (ret))

static void shapes_packed_and_not(void **state)
{
    (void)state;
    struct arena a;
    struct infer_pb_request q;
    /* inputs { shape: 1 (unpacked) shape: [2, 300] (packed) shape: -1 (unpacked) } */
    assert_int_equal(
        READ("\x2a\x12\x18\x01\x1a\x03\x02\xac\x02\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", &a,
             &q),
        INFER_PB_OK);
    const int64_t expected[] = {1, 2, 300, -1};
    assert_int_equal(q.inputs->rank, 4);
    assert_memory_equal(q.inputs->shape, expected, sizeof(expected));
    arena_fini(&a);
}

static void contents_in_two_parts(void **state)
{
    (void)state;
    struct arena a;
    struct infer_pb_request q;
    /* inputs { contents { uint: 1 (unpacked), uint: [2, 300] } contents { uint: 4 } } */
    assert_int_equal(READ("\x2a\x0d\x2a\x07\x20\x01\x22\x03\x02\xac\x02\x2a\x02\x20\x04", &a, &q),
                     INFER_PB_OK);
    const struct infer_pb_contents *c = q.inputs->contents;
    assert_int_equal(c->count[INFER_PB_UINTS], 4);
    uint8_t low[4];
    infer_pb_content_write(c, INFER_PB_UINTS, 1, low);
    assert_memory_equal(low, "\x01\x02\x2c\x04", 4);
    uint16_t half[4];
    infer_pb_content_write(c, INFER_PB_UINTS, 2, half);
    assert_int_equal(half[2], 300);
    arena_fini(&a);
    /* inputs { contents { fp32: [1] (packed), fp32: [2] (packed) } } */
    assert_int_equal(
        READ("\x2a\x0e\x2a\x0c\x32\x04\x00\x00\x80\x3f\x32\x04\x00\x00\x00\x40", &a, &q),
        INFER_PB_OK);
    float floats[2];
    infer_pb_content_write(q.inputs->contents, INFER_PB_FP32S, 4, floats);
    assert_memory_equal(floats, ((float[]){1, 2}), sizeof(floats));
    arena_fini(&a);
}

/* A truth value is 0 or 1 for a model, whatever number a writer put on the wire. */
static void truth_is_one(void **state)
{
    (void)state;
    struct arena a;
    struct infer_pb_request q;
    /* inputs { contents { bool: 2 (unpacked), bool: [2, 0, 1, 256] } }, parameters b = 2 */
    assert_int_equal(READ("\x2a\x0b\x2a\x09\x08\x02\x0a\x05\x02\x00\x01\x80\x02"
                          "\x22\x07\x0a\x01"
                          "b\x12\x02\x08\x02",
                          &a, &q),
                     INFER_PB_OK);
    const struct infer_pb_contents *c = q.inputs->contents;
    assert_int_equal(c->count[INFER_PB_BOOLS], 5);
    uint8_t truths[5];
    infer_pb_content_write(c, INFER_PB_BOOLS, 1, truths);
    assert_memory_equal(truths, "\x01\x01\x00\x01\x01", 5);
    assert_int_equal(q.params->choice, INFER_PB_BOOL);
    assert_int_equal(q.params->bits, 1);
    arena_fini(&a);
}

static void the_last_value_holds(void **state)
{
    (void)state;
    struct arena a;
    struct infer_pb_request q;
    /* id "a", id "b"; parameters k = 1, other = true, k = "x", j = 1; of a oneof the last member */
    assert_int_equal(READ("\x1a\x01"
                          "a\x1a\x01"
                          "b"
                          "\x22\x07\x0a\x01k\x12\x02\x10\x01"
                          "\x22\x0b\x0a\x05other\x12\x02\x08\x01"
                          "\x22\x0a\x0a\x01k\x12\x05\x10\x01\x1a\x01x"
                          "\x22\x07\x0a\x01j\x12\x02\x10\x01",
                          &a, &q),
                     INFER_PB_OK);
    same_text(q.id, "b");
    assert_int_equal(q.param_count, 3);
    same_text(q.params->name, "k");
    assert_int_equal(q.params->choice, INFER_PB_STRING);
    same_text(q.params->string, "x");
    same_text(q.params->next->name, "other");
    same_text(q.params->next->next->name, "j"); /* as long as "k" */
    arena_fini(&a);
}

static void unknown_fields_are_skipped(void **state)
{
    (void)state;
    struct arena a;
    struct infer_pb_request q;
    /* field 100 of each wire type; then a known number with another wire type; then the name */
    assert_int_equal(READ("\xa0\x06\x01"
                          "\xa1\x06"
                          "12345678"
                          "\xa2\x06\x02zz"
                          "\xa5\x06"
                          "1234"
                          "\x08\x05\x0d"
                          "1234"
                          "\x0a\x01m",
                          &a, &q),
                     INFER_PB_OK);
    same_text(q.model_name, "m");
    arena_fini(&a);
}

static void refuses(void **state)
{
    (void)state;
    static const struct {
        const char *wire;
        size_t len;
        enum infer_pb_result result;
    } cases[] = {
#define CASE(wire, result) {(wire), sizeof(wire) - 1, (result)}
        CASE("\x0b\x0c", INFER_PB_MALFORMED), /* a group */
        CASE("\x02\x01"
             "a",
             INFER_PB_MALFORMED),         /* field 0 */
        CASE("\x0e", INFER_PB_MALFORMED), /* wire type 6 */
        CASE("\x0a\x05"
             "ab",
             INFER_PB_MALFORMED), /* longer than the message */
        CASE("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
             INFER_PB_MALFORMED), /* length 2^64 - 1 */
        CASE("\xa0\x06\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
             INFER_PB_MALFORMED),                             /* eleven bytes */
        CASE("\xff\xff\xff\xff\xff\x01", INFER_PB_MALFORMED), /* tag over 32 bits */
        CASE("\x0a\x02\xc3\x28", INFER_PB_NOT_UTF8),
        CASE("\x2a\x04\x0a\x02\xff\xfe", INFER_PB_NOT_UTF8),
        CASE("\x22\x04\x0a\x02\xed\xa0", INFER_PB_NOT_UTF8),
        CASE("\x2a\x03\x1a\x01\x80", INFER_PB_MALFORMED),         /* cut inside packed dimensions */
        CASE("\x2a\x05\x2a\x03\x32\x01\x00", INFER_PB_MALFORMED), /* one byte of a packed float */
        CASE("\x2a\x05\x2a\x03\x12\x01\x80", INFER_PB_MALFORMED), /* cut inside packed integers */
#undef CASE
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct arena a;
        struct infer_pb_request q;
        assert_int_equal(read_text(cases[i].wire, cases[i].len, &a, &q), cases[i].result);
        arena_fini(&a);
    }
}

/* Two bytes of message must not turn into a hundred of memory without end. */
static void keeps_its_limits(void **state)
{
    (void)state;
    static const struct {
        const char *item;
        size_t len;
        size_t most;
    } cases[] = {
        {"\x2a\x00", 2, INFER_PB_MAX_TENSORS},
        {"\x32\x00", 2, INFER_PB_MAX_TENSORS},
        {"\x3a\x00", 2, INFER_PB_MAX_TENSORS},
        {"\x22\x03\x0a\x01k", 5, INFER_PB_MAX_PARAMS},
        {"\x2a\x02\x2a\x00", 4, INFER_PB_MAX_TENSORS},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char *wire = malloc((cases[i].most + 1) * cases[i].len);
        for (size_t k = 0; k <= cases[i].most; k++)
            memcpy(wire + k * cases[i].len, cases[i].item, cases[i].len);
        struct arena a;
        struct infer_pb_request q;
        assert_int_equal(read_text(wire, cases[i].most * cases[i].len, &a, &q), INFER_PB_OK);
        arena_fini(&a);
        assert_int_equal(read_text(wire, (cases[i].most + 1) * cases[i].len, &a, &q),
                         INFER_PB_TOO_MANY);
        arena_fini(&a);
        free(wire);
    }
}

static void finds_the_tensor_that_goes_on(void **state)
{
    (void)state;
    static const char wire[] = "\x0a\x01m\x2a\x02\x0a\x00\x3a\x02"
                               "ab"
                               "\x3a\xac\x02"
                               "the rest is missing";
    assert_int_equal(infer_pb_raw_offset(wire, sizeof(wire) - 1), 14);
    assert_int_equal(infer_pb_raw_offset(wire, 14), 14);
    assert_int_equal(infer_pb_raw_offset(wire, 13), 0); /* the length is cut */
    assert_int_equal(infer_pb_raw_offset(wire, 11), 0); /* nothing goes on */
    assert_int_equal(infer_pb_raw_offset(wire, 2), 0);  /* a name goes on */
    assert_int_equal(infer_pb_raw_offset("\x0b", 1), 0);
    assert_int_equal(infer_pb_raw_offset("", 0), 0);
}

UNIT_MAIN(UNIT(reads_what_protobuf_c_writes), UNIT(cut_anywhere), UNIT(damaged),
          UNIT(shapes_packed_and_not), UNIT(contents_in_two_parts), UNIT(truth_is_one),
          UNIT(the_last_value_holds), UNIT(unknown_fields_are_skipped), UNIT(refuses),
          UNIT(keeps_its_limits), UNIT(finds_the_tensor_that_goes_on))
