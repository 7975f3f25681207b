#pragma once
/* Loads and unloads of SageMaker's models: POST /models, DELETE /models/NAME. Worker's thread
 * only. */
struct err;
struct http_exchange;
struct http_message;
struct sagemaker_models;

/* sagemaker_control_load, sagemaker_control_unload - x is answered when that has ended.
 * all     must outlive x
 * errors  x is not answered then */
struct err *sagemaker_control_load(struct http_exchange *x, struct http_message *m,
                                   struct sagemaker_models *all);
struct err *sagemaker_control_unload(struct http_exchange *x, const struct http_message *m,
                                     struct sagemaker_models *all);
