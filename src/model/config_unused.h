#pragma once
/* Settings of a configuration that are read, checked and shown, and change nothing here. */
#include "base/strbuf.h"

struct Inference__ModelConfig;

/* config_unused - name those that a configuration gives.
 * proto  as it was written: defaults count as given
 * out    gets their names between commas; nothing is added where there are none */
void config_unused(const struct Inference__ModelConfig *proto, struct strbuf *out);
