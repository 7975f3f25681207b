#pragma once
/* The server's version, as clients see it. */

#define BUILD_VERSION "0.1.0"
