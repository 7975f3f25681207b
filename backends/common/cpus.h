#pragma once

/* cpus_usable - count the processors that this process may keep busy: those it may run on, bounded
 * by the CPU quota of its control group (versions 1 and 2) and of the groups around it.
 * returns  at least 1 */
int cpus_usable(void);
