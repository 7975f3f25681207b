/* os/shm_named: memory that is made under a name is found by it, once, and for as long as it has it. */
#include "os/shm_named.h"

#include "os/shm.h"
#include "support/unit.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void what_is_made_can_be_opened(void **state)
{
    (void)state;
    char key[64];
    int fd = -1, other = -1;
    struct shm_named m;
    snprintf(key, sizeof(key), "nereid_unit_%d", (int)getpid());
    unit_succeeds(shm_named_create(key, 4096, &fd));
    unit_fails(shm_named_create(key, 4096, &other), STATUS_UNAVAILABLE, key);
    char *at = shm_map(fd, 4096);
    assert_non_null(at);
    memcpy(at, "told", 4);
    other = shm_named_open(key, &m);
    assert_true(other >= 0 && m.bytes == 4096);
    shm_named_remove(key);
    assert_int_equal(shm_named_open(key, &m), -1);
    char *there = shm_map(other, 4096);
    assert_non_null(there);
    assert_memory_equal(there, "told", 4);
    shm_unmap(there, 4096);
    shm_unmap(at, 4096);
    shm_close(other);
    shm_close(fd);
}

UNIT_MAIN(UNIT(what_is_made_can_be_opened))
