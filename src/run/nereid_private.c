#include "nereid_private.h"

#include "run/run.h"
#include "os/process/crash.h"
#include "os/shm_guard.h"
#include "isolate/child/isolate_child.h"
#include "base/build_version.h"

static void tell_crash(int signal_number)
{
    crash_line(BUILD_VERSION, signal_number);
    isolate_child_crashed();
}

const struct nereid_private nereid_private_v1 = {
    .run = run_server,
    .crash_line = tell_crash,
    .memory_fault = shm_guard_fault,
};
