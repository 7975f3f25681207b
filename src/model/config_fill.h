#pragma once
/* What the server fills into a configuration that leaves things out. */
#include <stddef.h>

struct Inference__ModelConfig;

/* A sequence that is idle for longer is aborted, when its configuration does not say otherwise. */
#define CONFIG_FILL_SEQUENCE_IDLE_US 1000000u

/* config_fill_defaults - complete a message in place: name, platform and backend from each other,
 * default file name, version policy, preferred batch sizes, sequence idle time, pinned memory.
 * Instance groups are config_groups_fill's. What is set stays; running it again, after a backend
 * completed the message, changes only what is new.
 * model_name  the directory's name; used when the message has none
 * source      spec/model_config_proto.txt (defaults) */
void config_fill_defaults(struct Inference__ModelConfig *proto, const char *model_name);
