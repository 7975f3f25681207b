#pragma once

/* cpus_usable - the number of processors that this process may use: its affinity, limited by the
 * CPU quota of its control group (versions 1 and 2) and the groups above it.
 * returns  at least 1 */
int cpus_usable(void);
