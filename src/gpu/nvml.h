#pragma once
/* The functions of NVML (libnvidia-ml.so.1) that Nereid calls: what a GPU does, measured by the
 * machine's driver. The library is opened at run time and never linked.
 *
 * To add a function, add a row to NVML_CALLS:
 *   CALL(what it returns, member of struct nvml, symbol of the library, (its parameters))
 * with the types below. tests/cuda/nvml has to define the symbol too.
 * tests/00_gates/test_cuda_table.py compares the rows with NVIDIA's own declarations, which the
 * package cuda-bindings brings. */
#include "nereid/cuda_driver.h"

#include <stddef.h>

#define NVML_LIBRARY "libnvidia-ml.so.1"

/* What the functions return, as far as Nereid and its tests tell them apart. */
enum nvml_result {
    NVML_SUCCESS = 0,
    NVML_ERROR_UNINITIALIZED = 1,
    NVML_ERROR_INVALID_ARGUMENT = 2,
    NVML_ERROR_NOT_SUPPORTED = 3,
    NVML_ERROR_NOT_FOUND = 6,
};

struct nvml_device; /* of NVML */

struct nvml_utilization {
    unsigned gpu;    /* per cent of the last sample in which a kernel ran */
    unsigned memory; /* per cent in which memory was read or written */
};

/* The version that a caller sets in struct nvml_memory. */
#define NVML_MEMORY_VERSION ((2u << 24) | (unsigned)sizeof(struct nvml_memory))

struct nvml_memory {
    unsigned version;
    unsigned long long total;
    unsigned long long reserved; /* by the driver and the GPU; not part of `used` */
    unsigned long long free;
    unsigned long long used;
};

#define NVML_CALLS(CALL)                                                                     \
    CALL(int, init, nvmlInit_v2, (void))                                                     \
    CALL(int, shutdown, nvmlShutdown, (void))                                                \
    CALL(const char *, error_text, nvmlErrorString, (int result))                            \
    CALL(int, find, nvmlDeviceGetHandleByUUID, (const char *uuid, struct nvml_device **ret)) \
    CALL(int, utilization, nvmlDeviceGetUtilizationRates,                                    \
         (struct nvml_device * d, struct nvml_utilization * ret))                            \
    CALL(int, memory, nvmlDeviceGetMemoryInfo_v2,                                            \
         (struct nvml_device * d, struct nvml_memory * ret))                                 \
    CALL(int, power, nvmlDeviceGetPowerUsage, (struct nvml_device * d, unsigned *ret))       \
    CALL(int, power_limit, nvmlDeviceGetPowerManagementLimit,                                \
         (struct nvml_device * d, unsigned *ret))                                            \
    CALL(int, energy, nvmlDeviceGetTotalEnergyConsumption,                                   \
         (struct nvml_device * d, unsigned long long *ret))

#define NVML_MEMBER(type, member, symbol, parameters) type(*member) parameters;
/* power and power_limit are in milliwatts; energy in millijoules since the driver was loaded. */
struct nvml {
    NVML_CALLS(NVML_MEMBER)
};
#undef NVML_MEMBER

#define NVML_SYMBOL(type, member, symbol, parameters) {#symbol, offsetof(struct nvml, member)},
/* NVML_SYMBOLS - the initialiser of an array of struct cuda_driver_symbol, for struct nvml. */
#define NVML_SYMBOLS            \
    {                           \
        NVML_CALLS(NVML_SYMBOL) \
    }
