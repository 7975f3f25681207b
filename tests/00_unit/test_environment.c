/* The variables of the process: as POSIX says, and while others read them. */
#include "os/process/environment.h"

#include "base/fault.h"
#include "os/mutex.h"
#include "os/thread.h"
#include "support/unit.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VARIABLES 2000
#define TURNS     1000

static void variables_are_set_put_and_unset(void **state)
{
    (void)state;
    assert_int_equal(environment_set("NEREID_A", "1", 0), 0);
    assert_string_equal(getenv("NEREID_A"), "1");
    assert_int_equal(environment_set("NEREID_A", "2", 0), 0);
    assert_string_equal(getenv("NEREID_A"), "1");
    assert_int_equal(environment_set("NEREID_A", "2", 1), 0);
    assert_string_equal(getenv("NEREID_A"), "2");
    assert_int_equal(environment_set("NEREID_AB", "", 1), 0);
    assert_string_equal(getenv("NEREID_AB"), "");
    static char text[] = "NEREID_A=3";
    assert_int_equal(environment_put(text), 0);
    text[sizeof(text) - 2] = '4'; /* the caller's own text is in use */
    assert_string_equal(getenv("NEREID_A"), "4");
    assert_int_equal(environment_unset("NEREID_A"), 0);
    assert_null(getenv("NEREID_A"));
    assert_string_equal(getenv("NEREID_AB"), "");
    static char name[] = "NEREID_AB";
    assert_int_equal(environment_put(name), 0);
    assert_null(getenv("NEREID_AB"));
    assert_int_equal(environment_unset("NEREID_AB"), 0);
}

static void all_of_one_name_are_unset(void **state)
{
    (void)state;
    char one[] = "NEREID_B=1", other[] = "NEREID_B=2", third[] = "NEREID_C=3";
    char *given[] = {one, third, other, NULL}, **before = environ;
    environ = given;
    assert_int_equal(environment_unset("NEREID_B"), 0);
    assert_null(getenv("NEREID_B"));
    assert_string_equal(getenv("NEREID_C"), "3");
    environ = NULL; /* clearenv does so */
    assert_int_equal(environment_set("NEREID_B", "4", 0), 0);
    assert_string_equal(getenv("NEREID_B"), "4");
    environ = before;
}

static void what_was_cut_off_stays_away(void **state)
{
    (void)state;
    char first[] = "NEREID_D=1", second[] = "NEREID_E=2", *given[] = {first, second, NULL};
    char **before = environ;
    environ = given;
    assert_int_equal(environment_set("NEREID_F", "3", 1), 0);
    environ[1] = NULL;
    assert_int_equal(environment_set("NEREID_G", "4", 1), 0);
    assert_string_equal(getenv("NEREID_D"), "1");
    assert_null(getenv("NEREID_E"));
    assert_null(getenv("NEREID_F"));
    assert_string_equal(getenv("NEREID_G"), "4");
    char **ours = environ;
    assert_int_equal(environment_clear(), 0);
    assert_null(getenv("NEREID_D"));
    assert_null(getenv("NEREID_G"));
    assert_int_equal(environment_set("NEREID_E", "5", 1), 0);
    assert_string_equal(getenv("NEREID_E"), "5");
    assert_ptr_equal(environ, ours);
    assert_int_equal(environment_clear(), 0);
    environ = before;
}

/* Others' code does, where it is called: the loader runs constructors, a driver starts. */
static void a_variable_is_set_whatever_is_locked(void **state)
{
    (void)state;
    struct mutex innermost = MUTEX_INIT(MUTEX_RANK_LEAF);
    mutex_lock(&innermost);
    assert_int_equal(environment_set("NEREID_I", "1", 1), 0);
    assert_int_equal(environment_unset("NEREID_I"), 0);
    mutex_unlock(&innermost);
}

static void no_memory_is_told(void **state)
{
    (void)state;
    assert_int_equal(environment_set("NEREID_H", "1", 1), 0);
    fault_arm(1);
    errno = 0;
    assert_int_equal(environment_set("NEREID_H", "2", 1), -1);
    assert_int_equal(errno, ENOMEM);
    assert_string_equal(getenv("NEREID_H"), "1");
    char text[] = "NEREID_D=1", *given[] = {text, NULL}, **before = environ;
    environ = given;
    fault_arm(1);
    errno = 0;
    assert_int_equal(environment_unset("NEREID_D"), -1);
    assert_int_equal(errno, ENOMEM);
    fault_arm(1);
    assert_int_equal(environment_put(given[0]), -1);
    fault_arm(1);
    assert_int_equal(environment_clear(), 0);
    fault_arm(0);
    assert_null(getenv("NEREID_D"));
    environ = before;
    assert_int_equal(environment_unset("NEREID_H"), 0);
}

static void what_is_no_name_is_refused(void **state)
{
    (void)state;
    errno = 0;
    assert_int_equal(environment_set("", "1", 1), -1);
    assert_int_equal(errno, EINVAL);
    errno = 0;
    assert_int_equal(environment_set("A=B", "1", 1), -1);
    assert_int_equal(errno, EINVAL);
    errno = 0;
    assert_int_equal(environment_unset("A=B"), -1);
    assert_int_equal(errno, EINVAL);
    char empty[] = "";
    assert_int_equal(environment_put(empty), 0);
}

static size_t count_places(void)
{
    size_t count = 0;
    while (environ[count])
        count++;
    return count;
}

static void turns_cost_no_memory(void **state)
{
    (void)state;
    environment_set("NEREID_TURN", "on", 1);
    environment_set("NEREID_TURN", "off", 1);
    const char *off = getenv("NEREID_TURN");
    char **place = environ;
    size_t places = count_places();
    for (int i = 0; i < TURNS; i++) {
        assert_int_equal(environment_set("NEREID_TURN", i % 2 ? "off" : "on", 1), 0);
        assert_string_equal(getenv("NEREID_TURN"), i % 2 ? "off" : "on");
        if (i % 2)
            assert_ptr_equal(getenv("NEREID_TURN"), off);
        assert_int_equal(environment_unset("NEREID_TURN"), 0);
    }
    assert_ptr_equal(environ, place);
    assert_int_equal(count_places(), places);
}

static atomic_bool ended;

static void set_many(void *arg)
{
    for (int i = 0; i < VARIABLES; i++) {
        char name[64];
        snprintf(name, sizeof(name), "NEREID_%s_%d", (const char *)arg, i);
        environment_set(name, "some", 1);
        if (i % 3 == 0)
            environment_unset(name);
    }
}

/* As exec does: through the place that was the variables' when it began. */
static void read_all(void *arg)
{
    atomic_int *missed = arg;
    while (!ended) {
        char **at = __atomic_load_n(&environ, __ATOMIC_ACQUIRE);
        bool found = false;
        for (char *text; (text = __atomic_load_n(at, __ATOMIC_ACQUIRE)); at++)
            found = found || strcmp(text, "NEREID_LAST=here") == 0;
        *missed += !found;
        *missed += !getenv("NEREID_LAST");
    }
}

static void readers_find_all(void **state)
{
    (void)state;
    atomic_int missed = 0;
    char names[][2] = {"A", "B"};
    struct thread *readers[2], *writers[2];
    assert_int_equal(environment_set("NEREID_LAST", "here", 1), 0);
    ended = false;
    for (int i = 0; i < 2; i++) {
        assert_null(thread_start("read", read_all, &missed, &readers[i]));
        assert_null(thread_start("set", set_many, names[i], &writers[i]));
    }
    for (int i = 0; i < 2; i++)
        thread_join(writers[i]);
    ended = true;
    for (int i = 0; i < 2; i++)
        thread_join(readers[i]);
    assert_int_equal(missed, 0);
    assert_string_equal(getenv("NEREID_A_1"), "some");
    assert_null(getenv("NEREID_B_1998"));
    assert_string_equal(getenv("NEREID_B_1999"), "some");
}

UNIT_MAIN(UNIT(variables_are_set_put_and_unset), UNIT(all_of_one_name_are_unset),
          UNIT(what_was_cut_off_stays_away), UNIT(a_variable_is_set_whatever_is_locked),
          UNIT(no_memory_is_told), UNIT(what_is_no_name_is_refused), UNIT(turns_cost_no_memory),
          UNIT(readers_find_all))
