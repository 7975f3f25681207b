#include "os/clock.h"
#include "support/unit.h"

#define ERROR TIME_MS(1) /* the unit in which clients see it */

/* The wall time of a monotonic one is what the wall clock showed then. */
static void wall_time_of_a_moment(void **state)
{
    (void)state;
    for (int i = 0; i < 1000; i++) {
        time_ns before = clock_wall_ns();
        time_ns moment = clock_now_ns();
        time_ns after = clock_wall_ns();
        time_ns at = clock_wall_at(moment);
        assert_true(at + ERROR >= before && at <= after + ERROR);
        time_ns earlier = clock_wall_at(moment - TIME_MS(20));
        assert_true(at - earlier > TIME_MS(20) - ERROR && at - earlier < TIME_MS(20) + ERROR);
    }
}

/* What is still to come counts as now, and spoils nothing for those who ask afterwards. */
static void time_still_to_come(void **state)
{
    (void)state;
    time_ns at = clock_wall_at(clock_now_ns() + TIME_S(1000000));
    assert_true(at <= clock_wall_ns() + ERROR);
    wall_time_of_a_moment(state);
}

UNIT_MAIN(UNIT(wall_time_of_a_moment), UNIT(time_still_to_come))
