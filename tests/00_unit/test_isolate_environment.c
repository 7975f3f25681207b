/* What passes of the environment, by name. */
#include "isolate/isolate_environment.h"

#include "base/mem.h"
#include "os/thread.h"
#include "support/unit.h"

#include <stdatomic.h>
#include <string.h>

static void what_tunes_passes(void **state)
{
    (void)state;
    assert_true(isolate_environment_passes("PATH=/bin", NULL));
    assert_true(isolate_environment_passes("LC_ALL=C", NULL));
    assert_true(isolate_environment_passes("OMP_NUM_THREADS=1", ""));
    assert_true(isolate_environment_passes("CUDA_VISIBLE_DEVICES=", NULL));
}

static void credentials_do_not(void **state)
{
    (void)state;
    static const char *const keys[] = {"AWS_SECRET_ACCESS_KEY=x",
                                       "GOOGLE_APPLICATION_CREDENTIALS=x",
                                       "HF_TOKEN=x",
                                       "NVIDIA_API_KEY=x",
                                       "PATHS=x",
                                       "PAT=x",
                                       "TRITON_CLOUD_CREDENTIAL_PATH=x",
                                       "LC=x",
                                       "=x",
                                       ""};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        assert_false(isolate_environment_passes(keys[i], NULL));
        assert_false(isolate_environment_passes(keys[i], " , "));
        assert_true(isolate_environment_passes(keys[i], "*"));
    }
}

static void more_is_named(void **state)
{
    (void)state;
    assert_true(isolate_environment_passes("HF_TOKEN=x", "AWS_REGION,HF_TOKEN"));
    assert_true(isolate_environment_passes("HF_TOKEN=x", "HF_*\tAWS_REGION"));
    assert_false(isolate_environment_passes("HF_TOKEN=x", "HF_TOKE HF_TOKENS HF"));
    char a[] = "A=1", path[] = "PATH=/bin", b[] = "B=2", zone[] = "TZ=UTC";
    char *all[] = {a, path, b, zone, NULL};
    const char **some = isolate_environment_new(all, "B");
    assert_string_equal(some[0], "PATH=/bin");
    assert_string_equal(some[1], "B=2");
    assert_string_equal(some[2], "TZ=UTC");
    assert_null(some[3]);
    mem_free(some);
}

#define VARIABLES 200

static atomic_bool ended;

static void change(void *arg)
{
    static char path[] = "PATH=/bin";
    for (char **place = arg; !ended;) {
        __atomic_store_n(place, path, __ATOMIC_RELEASE);
        __atomic_store_n(place, NULL, __ATOMIC_RELEASE);
    }
}

static void variables_change_meanwhile(void **state)
{
    (void)state;
    char zone[] = "TZ=UTC", *all[VARIABLES + 2];
    for (int i = 0; i < VARIABLES; i++)
        all[i] = zone;
    all[VARIABLES] = all[VARIABLES + 1] = NULL;
    struct thread *changing;
    assert_null(thread_start("change", change, &all[VARIABLES], &changing));
    for (int i = 0; i < 2000; i++) {
        const char **some = isolate_environment_new(all, NULL);
        const char *last = some[VARIABLES];
        assert_true(!last || (strcmp(last, "PATH=/bin") == 0 && !some[VARIABLES + 1]));
        mem_free(some);
    }
    ended = true;
    thread_join(changing);
}

UNIT_MAIN(UNIT(what_tunes_passes), UNIT(credentials_do_not), UNIT(more_is_named),
          UNIT(variables_change_meanwhile))
