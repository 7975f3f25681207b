#include "isolate/isolate_environment.h"

#include "base/mem.h"

#include <stddef.h>
#include <string.h>

#define BETWEEN " \t\n,"

/* docs/user/isolation.md lists these. A variable that holds a key or a token for some library
 * must not be here. */
static const char always[] =
    "PATH HOME USER LOGNAME SHELL LANG LANGUAGE LC_* TZ TERM TMPDIR XDG_CACHE_HOME "
    "LD_LIBRARY_PATH LD_PRELOAD GLIBC_TUNABLES MALLOC_* "
    "PYTHONHOME PYTHONPATH PYTHONDONTWRITEBYTECODE PYTHONUNBUFFERED PYTHONHASHSEED VIRTUAL_ENV "
    "CONDA_PREFIX "
    "OMP_* GOMP_* KMP_* MKL_* OPENBLAS_* BLIS_* NUMEXPR_* "
    "CUDA_* NVIDIA_VISIBLE_DEVICES NVIDIA_DRIVER_CAPABILITIES NCCL_* "
    "ASAN_OPTIONS LSAN_OPTIONS TSAN_OPTIONS UBSAN_OPTIONS";

static bool isolate_environment_is_named(const char *variable, size_t name_len, const char *list)
{
    for (const char *at = list; *(at += strspn(at, BETWEEN));) {
        size_t len = strcspn(at, BETWEEN);
        bool all = at[len - 1] == '*';
        if (all ? name_len >= len - 1 && memcmp(variable, at, len - 1) == 0
                : name_len == len && memcmp(variable, at, len) == 0)
            return true;
        at += len;
    }
    return false;
}

bool isolate_environment_passes(const char *variable, const char *more)
{
    size_t len = strcspn(variable, "=");
    return isolate_environment_is_named(variable, len, always) ||
           (more && isolate_environment_is_named(variable, len, more));
}

/* Other threads of a program that embeds the server may set and unset some meanwhile. */
static const char *variable_at(char *const *all, size_t i)
{
    return __atomic_load_n(&all[i], __ATOMIC_ACQUIRE);
}

const char **isolate_environment_new(char *const *all, const char *more)
{
    size_t count = 0;
    while (variable_at(all, count))
        count++;
    const char **some = mem_alloc((count + 1) * sizeof(*some));
    size_t kept = 0;
    const char *each;
    for (size_t i = 0; i < count && (each = variable_at(all, i)); i++)
        if (isolate_environment_passes(each, more))
            some[kept++] = each;
    some[kept] = NULL;
    return some;
}
