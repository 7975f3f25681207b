/* The executable: everything is in the library. What belongs to the process and not to a library is done here. */
#include "nereid_private.h"

#include <malloc.h>

int main(int argc, char **argv)
{
    /* Few heaps and prompt trimming: the memory of a burst goes back instead of staying in a heap per thread. */
    mallopt(M_ARENA_MAX, 2);
    mallopt(M_TRIM_THRESHOLD, 1 << 20);
    return nereid_private_v1.run(argc, argv);
}
