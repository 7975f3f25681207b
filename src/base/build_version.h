#pragma once
/* What this server is, as clients see it. */

#define BUILD_VERSION "0.1.0"
