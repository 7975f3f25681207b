#pragma once
/* Fills in what a configuration leaves out. */
#include <stddef.h>

struct Inference__ModelConfig;

/* The default after which an idle sequence is aborted. */
#define CONFIG_FILL_SEQUENCE_IDLE_US 1000000u

/* config_fill_defaults - complete a message in place: name, platform and backend from each
 * other, default file name, version policy, preferred batch sizes, sequence idle time, pinned
 * memory. For instance groups see config_groups_fill. Fields that are set stay. It may be called
 * again after a backend completed the message; then only new parts change.
 * model_name  the directory's name; used if the message has no name
 * source      spec/model_config_proto.txt (defaults) */
void config_fill_defaults(struct Inference__ModelConfig *proto, const char *model_name);
