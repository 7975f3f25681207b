#pragma once
/* What the GPUs that are used are doing, as NVML measures it: read again and again on a thread of
 * its own, `gpu-meter`, because a call of NVML may take as long as it likes. The thread exists
 * while there is a server that wants readings, and somebody found a GPU (gpu_look). */
#include "gpu/gpu.h"
#include "os/clock.h"

/* In place of a value that NVML does not tell. */
#define GPU_METER_UNKNOWN UINT64_MAX

/* Readings do not come sooner after each other: NVML's own measurements are not closer either. */
#define GPU_METER_LEAST TIME_MS(100)

struct gpu_meter_reading {
    char uuid[sizeof(((struct gpu_device *)NULL)->uuid)];
    uint64_t busy_ppm; /* millionths of the time in which it computed, at most all of them */
    uint64_t total_bytes;
    uint64_t used_bytes;
    uint64_t power_mw;
    uint64_t limit_mw;
    uint64_t energy_mj; /* since the first reading; never falls */
};

/* gpu_meter_want - a server wants readings at this interval, or at GPU_METER_LEAST if that is
 *                  longer. The last one that says so decides; it holds until gpu_close. */
void gpu_meter_want(time_ns interval);

/* How long the end of the last server waits for NVML (1 s), and how old the latest reading may be
 * besides three intervals (2 s). */
struct gpu_meter_patience {
    time_ns end, stale;
};

/* gpu_meter_be_patient - for tests: another patience, until the next call. */
void gpu_meter_be_patient(struct gpu_meter_patience p);

/* gpu_meter_read - the latest readings, of GPUs that NVML knows, in CUDA's order. Never waits.
 * returns  how many; 0 also before the first, where the latest is three intervals and two seconds
 *          old, and where nobody wants any or there is no GPU */
size_t gpu_meter_read(struct gpu_meter_reading ret[GPU_MAX]);
