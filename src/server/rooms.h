#pragma once
/* The features that this server was built with. */
#include "serve/features.h"

extern const struct feature_list rooms_list;
