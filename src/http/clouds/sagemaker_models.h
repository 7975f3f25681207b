#pragma once
/* The models that SageMaker asked to load: each has the name that SageMaker gave it, the name that
 * it is served under, and the URL that it was loaded from. Any thread; never blocks for long.
 *
 * A model is added before it is loaded and removed after it was unloaded, so that two requests
 * about it never work at the same time. */
#include <stdbool.h>
#include <stddef.h>

struct err;
struct sagemaker_models;
struct strbuf;

#define SAGEMAKER_MODELS_MOST       4096u /* at the same time */
#define SAGEMAKER_MODELS_NAME_BYTES 512u  /* of a name, with its NUL */
#define SAGEMAKER_MODELS_URL_BYTES  4096u

struct sagemaker_models *sagemaker_models_new(void);
void sagemaker_models_free(struct sagemaker_models *all);

/* sagemaker_models_add - a model is going to be loaded.
 * target  what it will be served as
 * errors  ALREADY_EXISTS: the name or the target is in use; INVALID_ARG: one of them is empty or
 *         too long; UNAVAILABLE: there are too many */
struct err *sagemaker_models_add(struct sagemaker_models *all, const char *name, const char *target,
                                 const char *url);

/* sagemaker_models_loaded - it serves; or it does not, and is forgotten. */
void sagemaker_models_loaded(struct sagemaker_models *all, const char *name, bool ok);

/* sagemaker_models_target - what a model is served as, unless it is still being loaded or already
 * being unloaded: false, like for one that does not exist.
 * name    len bytes
 * leaves  it is going to be unloaded: followed by sagemaker_models_left */
bool sagemaker_models_target(struct sagemaker_models *all, const char *name, size_t len,
                             bool leaves, char ret[SAGEMAKER_MODELS_NAME_BYTES]);

/* sagemaker_models_left - it was unloaded and is forgotten; or it serves on. */
void sagemaker_models_left(struct sagemaker_models *all, const char *name, bool ok);

/* sagemaker_models_tell - append one that serves, as SageMaker reads it; false if it does not.
 * sagemaker_models_list - append all of them. */
bool sagemaker_models_tell(struct sagemaker_models *all, const char *name, size_t len,
                           struct strbuf *to);
void sagemaker_models_list(struct sagemaker_models *all, struct strbuf *to);
