/* Restricts what the process of an isolated model may do. */
#include "base/mem.h"
#include "os/process/confine.h"
#include "isolate/child/isolate_child_priv.h"
#include "isolate/wire/isolate_settings.h"

#include <string.h>

#define MOST_PATHS 256u

_Static_assert(CONFINE_NETWORK == (int)ISOLATE_DENY_NETWORK, "");
_Static_assert(CONFINE_PROGRAMS == (int)ISOLATE_DENY_PROGRAMS, "");

/* What every program needs from the system. From /proc only its own entry: other entries show
 * data of other processes of the same user. */
static const struct confine_path system_paths[] = {
    {"/usr", false},
    {"/lib", false},
    {"/lib32", false},
    {"/lib64", false},
    {"/bin", false},
    {"/sbin", false},
    {"/etc/ld.so.cache", false},
    {"/etc/ld.so.preload", false},
    {"/etc/localtime", false},
    {"/etc/nsswitch.conf", false},
    {"/etc/passwd", false},
    {"/etc/group", false},
    {"/proc/self", false},
    {"/proc/cpuinfo", false},
    {"/proc/meminfo", false},
    {"/proc/stat", false},
    {"/proc/sys/vm/overcommit_memory", false},
    {"/sys/devices/system", false},
    {"/sys/fs/cgroup", false},
    {"/dev/null", true},
    {"/dev/zero", true},
    {"/dev/full", true},
    {"/dev/random", false},
    {"/dev/urandom", false},
};

#define SYSTEM_PATHS (sizeof(system_paths) / sizeof(system_paths[0]))

/* Denies all files except these. lines: "r PATH" to read and "w PATH" to write, one per line;
 * changed by the call. */
static struct err *confine_to(char *lines)
{
    struct confine_path paths[MOST_PATHS];
    unsigned count = SYSTEM_PATHS;
    memcpy(paths, system_paths, sizeof(system_paths));
    for (char *end; (end = strchr(lines, '\n')); lines = end + 1) {
        if (count == MOST_PATHS)
            return err_new(STATUS_INVALID_ARG, "at most %zu paths are taken",
                           (size_t)MOST_PATHS - SYSTEM_PATHS);
        *end = '\0';
        paths[count++] = (struct confine_path){lines + 2, *lines == 'w'};
    }
    return confine_files(paths, count);
}

struct err *isolate_child_confine(struct isolate_wire *w, bool *ret_confined)
{
    bool other = isolate_wire_get(w) != 0;
    uint32_t user = (uint32_t)isolate_wire_get(w);
    uint32_t group = (uint32_t)isolate_wire_get(w);
    unsigned deny = (unsigned)isolate_wire_get(w);
    *ret_confined = deny != 0;
    char *files = mem_strdup(isolate_wire_get_text(w));
    struct err *e = confine_privileges();
    if (!e && other)
        e = err_wrap(confine_user(user, group), "parameter 'ISOLATION_USER'");
    if (!e && deny & ISOLATE_DENY_FILES)
        e = err_wrap(confine_to(files), "parameter 'ISOLATION_DENY'");
    if (!e && deny)
        e = err_wrap(confine_calls(deny), "parameter 'ISOLATION_DENY'");
    mem_free(files);
    return e;
}
