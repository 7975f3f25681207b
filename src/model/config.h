#pragma once
/* The configuration of one model: a ModelConfig message (proto/model_config.proto), read from text
 * or JSON, completed, checked, and compiled into an immutable index for the request path. All of it
 * is pure: bytes and facts in, structs and errors out.
 *
 * The life of a configuration; each step works on a message that one thread owns:
 *   config_parse_text, config_parse_json   or config_new_proto if there is no file
 *   config_guess_backend                   (config_guess.h) if nothing names a backend
 *   config_fill_defaults                   (config_fill.h)
 *   config_check_model, PARTIAL            (config_check.h)
 *   the backend may complete the message; config_fill_defaults runs again
 *   config_check_model, FULL
 *   config_groups_fill, config_groups_check (config_groups.h), with the GPUs of the machine
 *   config_compile                         -> struct model_config, shared by reference count
 */
#include "base/buf.h"
#include "base/err.h"
#include "model/datatype.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct Inference__ModelConfig; /* proto/model_config.pb-c.h */

/* The largest configuration text or JSON that is read. */
#define CONFIG_MAX_BYTES ((size_t)4 << 20)

/* The most inputs, and the most outputs, of a model. */
#define CONFIG_MAX_IO 4096u

enum config_scheduler {
    CONFIG_SCHEDULER_DEFAULT,
    CONFIG_SCHEDULER_DYNAMIC,
    CONFIG_SCHEDULER_SEQUENCE,
    CONFIG_SCHEDULER_ENSEMBLE,
};

/* One input or output. Names and shapes lie in the message. */
struct model_io {
    const char *name;
    size_t name_len;
    enum datatype datatype;
    const int64_t *dims; /* without the batch dimension; SHAPE_ANY = any size */
    uint32_t rank;
    bool has_reshape; /* true with reshape_rank 0 is legal: "reshape { shape: [ ] }" */
    const int64_t *reshape;
    uint32_t reshape_rank;
    bool optional;     /* inputs: may be left out of a request */
    bool ragged;       /* inputs: requests of different shapes may share a batch */
    bool shape_tensor; /* the request's shape has no batch dimension */
    bool non_linear;   /* inputs: in a format of the backend's; shape and size are not checked */
    const char *label_filename; /* outputs: "" if there is none */
};

struct config_names;
struct config_openai;

/* A published configuration: it is immutable, and any thread that holds a reference may read it. */
struct model_config {
    const char *name;
    const char *platform; /* "" when only the backend is named */
    const char *backend;  /* "" when only the platform is named */
    int32_t max_batch_size;
    bool decoupled;
    bool response_cache;
    enum config_scheduler scheduler;
    struct model_io *inputs;
    uint32_t input_count;
    struct model_io *outputs;
    uint32_t output_count;
    uint32_t required_inputs; /* inputs that are not optional */
    /* owned: how requests in OpenAI's form are served; NULL = they are not */
    struct config_openai *openai;
    const struct Inference__ModelConfig *proto; /* owned */

    /* private to config.c */
    struct config_names *names;
    _Atomic(struct buf *) text; /* see config_text; NULL until somebody asks for it */
    atomic_uint refs;
};

/* config_new_proto - an empty message on the heap; config_free_proto frees it (NULL is fine). */
struct Inference__ModelConfig *config_new_proto(void);
void config_free_proto(struct Inference__ModelConfig *proto);

/* config_copy_proto - an independent copy, e.g. to complete what a published configuration holds.
 * Never NULL. */
struct Inference__ModelConfig *config_copy_proto(const struct Inference__ModelConfig *proto);

/* config_parse_text - read a config.pbtxt.
 * text    len bytes, need not end in NUL; at most CONFIG_MAX_BYTES
 * file    how messages name the text, e.g. "models/resnet/config.pbtxt"
 * ret     the message, owned by the caller (config_free_proto)
 * errors  INVALID_ARG "file:line:column: field: expected ..., found ..."
 * source  spec/model_configuration.txt, Introduction */
struct err *config_parse_text(const char *text, size_t len, const char *file,
                              struct Inference__ModelConfig **ret);

/* config_parse_json - read the JSON form, as the load API and TRITONBACKEND_ModelSetConfig give it.
 * ret     the message, owned by the caller
 * errors  INVALID_ARG naming the JSON position or the path of the field */
struct err *config_parse_json(const char *text, size_t len, struct Inference__ModelConfig **ret);

/* config_print_json - the message as JSON, in the form of version 1 of the C ABI: names as in the
 * schema, every field but unset messages, 64-bit integers as numbers.
 * returns the text, followed by NUL; the caller frees it (mem_free); ret_len may be NULL */
char *config_print_json(const struct Inference__ModelConfig *proto, size_t *ret_len);

/* config_text - the result of config_print_json for a published configuration. It is made when
 * first needed, and kept with the configuration. Any thread.
 * returns a reference of the caller's (buf_unref) */
struct buf *config_text(struct model_config *cfg);

/* config_compile - make the shared form of a checked message.
 * proto   owned by *ret on success: *proto is NULL then
 * ret     the caller gets one reference
 * errors  INVALID_ARG for two inputs or two outputs of one name, or too many of them; those of
 *         config_openai_read */
struct err *config_compile(struct Inference__ModelConfig **proto, struct model_config **ret);

/* config_ref, config_unref - count references; the last one frees. Any thread. */
struct model_config *config_ref(struct model_config *cfg);
void config_unref(struct model_config *cfg);

/* config_input, config_output - the index of an input or output with this name; -1 if there is
 * none. Any thread. */
int32_t config_input(const struct model_config *cfg, const char *name, size_t len);
int32_t config_output(const struct model_config *cfg, const char *name, size_t len);
