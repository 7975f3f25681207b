#include "os/heap.h"

#include "os/mutex.h"
#include "os/thread.h"

#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define HEAPS     2
#define PAD_BYTES (128 << 10) /* the default of the C library */

/* Larger pieces are mapped on their own, and each of their pages costs a fault each time. The C
 * library begins with 128 KiB and goes up to this as pieces are freed, but no more once a value of
 * its is set: a runtime that allocates what lies between the layers of a network anew for each run
 * then took nearly twice its CPU time. */
#define MAPPED_BYTES (32 << 20)

/* Free bytes that stay at the end of an arena: during a start, and behind it. */
#define FIRST_KEPT_BYTES (1 << 20)
#define KEPT_BYTES       (2 * MAPPED_BYTES)

/* Threads that other threads start meanwhile take turns, too. */
#define SECOND_HEAP_TRIES 8

/* A part of the 64 MiB that an arena other than the first can have. */
#define GROWN_BYTES ((size_t)32 << 20)

/* Smaller than pieces that the C library ever maps on their own. */
#define PIECE_BYTES ((size_t)120 << 10)

/* Frees pieces that are linked: each begins with a pointer to the next. */
static void heap_free_all(void *first)
{
    while (first) {
        void **piece = first;
        first = *piece;
        free(piece);
    }
}

/* Takes pieces from the calling thread's arena and frees them, last one first. */
static void heap_grow(void *unused)
{
    (void)unused;
    void **last = NULL;
    for (size_t taken = 0; taken < GROWN_BYTES; taken += PIECE_BYTES) {
        void **piece = malloc(PIECE_BYTES);
        if (!piece)
            break;
        *piece = last;
        last = piece;
    }
    heap_free_all(last);
}

/* The C library grows every arena except the first by one page at a time, with a system call for
 * each. Each call also delays threads that touch a new page; this took a third of the time in
 * which ONNX Runtime gets ready. An arena does not need the calls up to a size that it had
 * before. So a first thread grows such an arena and leaves it to later threads. */
static void grow_second_heap(void)
{
    struct thread *t;
    struct err *e = thread_start("heap", heap_grow, NULL, &t);
    if (!e)
        thread_join(t);
    err_free(e);
}

static bool ours; /* true after heap_begin; written before there is another thread */
static int kept_bytes = FIRST_KEPT_BYTES; /* guarded by settings */

/* What mallopt sets is for all threads, and each that shortens its arena sets it for a moment. */
static struct mutex settings = MUTEX_INIT(MUTEX_RANK_LEAF);

void heap_begin(void)
{
    ours = true;
    mallopt(M_TRIM_THRESHOLD, FIRST_KEPT_BYTES);
    if (mallopt(M_ARENA_MAX, HEAPS))
        grow_second_heap();
}

void heap_keep_large(void)
{
    if (!ours)
        return;
    mutex_lock(&settings);
    kept_bytes = KEPT_BYTES;
    mallopt(M_MMAP_THRESHOLD, MAPPED_BYTES);
    mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
    mutex_unlock(&settings);
}

bool heap_is_own(void)
{
    return ours;
}

#if defined(__SANITIZE_ADDRESS__)

/* The sanitizer's public interface, because gcc does not install its header. */
size_t __sanitizer_get_heap_size(void);
size_t __sanitizer_get_current_allocated_bytes(void);
void __sanitizer_purge_allocator(void);

int64_t heap_idle_bytes(void)
{
    return (int64_t)__sanitizer_get_heap_size() -
           (int64_t)__sanitizer_get_current_allocated_bytes();
}

void heap_give_back(void)
{
    __sanitizer_purge_allocator();
}

void heap_empty_own(void)
{
}

void heap_shorten_own(void)
{
}

#else

/* Each thread caches some free pieces of each small size. No other thread can use them, and they
 * keep their pages in memory. */
#define CACHED_SIZES 64u
#define CACHED_FIRST 24u
#define CACHED_STEP  16u
#define CACHED_EACH  7u

/* Pages that belong to no file; 0 = unknown. The kernel gives numbers of pages: of the whole
 * address space, of what is resident, of what is resident and belongs to a file. */
static int64_t resident_private_bytes(void)
{
    char text[128];
    int64_t resident = 0, of_files = 0;
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0)
        close(fd);
    text[n < 0 ? 0 : n] = '\0';
    if (sscanf(text, "%*u %" SCNd64 " %" SCNd64, &resident, &of_files) != 2)
        return 0;
    return (resident - of_files) * sysconf(_SC_PAGESIZE);
}

int64_t heap_idle_bytes(void)
{
    struct mallinfo2 m = mallinfo2();
    return resident_private_bytes() - (int64_t)(m.uordblks + m.hblkhd);
}

/* Empties the calling thread's cache. The pieces leave it when they are allocated. Another
 * thread then frees them, and that thread's cache is freed when it ends. */
static void empty_own_store(void)
{
    void **last = NULL;
    for (unsigned i = 0; i < CACHED_SIZES * CACHED_EACH; i++) {
        void **piece = malloc(CACHED_FIRST + i / CACHED_EACH * CACHED_STEP);
        if (!piece)
            break;
        *piece = last;
        last = piece;
    }
    struct thread *t;
    struct err *e = thread_start("heap", heap_free_all, last, &t);
    if (e)
        heap_free_all(last);
    else
        thread_join(t);
    err_free(e);
}

/* malloc_trim does not shorten arenas other than the first. The C library checks the end of an
 * arena when a large piece is freed, so one is freed. Returns false if the calling thread's arena
 * is the first: that one ends where brk says, and others lie behind. */
static bool shorten_own_arena(void)
{
    mutex_lock(&settings);
    mallopt(M_TRIM_THRESHOLD, 0);
    mallopt(M_TOP_PAD, 0);
    void **piece = malloc(PIECE_BYTES);
    bool first = (uintptr_t)piece < (uintptr_t)sbrk(0);
    if (piece)
        *piece = NULL;
    heap_free_all(piece);
    mallopt(M_TRIM_THRESHOLD, kept_bytes);
    mallopt(M_TOP_PAD, PAD_BYTES);
    mutex_unlock(&settings);
    return !first;
}

void heap_shorten_own(void)
{
    if (ours)
        shorten_own_arena();
}

#if !defined(__SANITIZE_THREAD__)
static void heap_shorten(void *arg)
{
    *(bool *)arg = shorten_own_arena();
}

/* The second arena may be that of threads that do nothing at the moment. New threads get arenas by
 * turns, or one that no thread has. */
static void shorten_second_heap(void)
{
    bool done = false;
    for (int i = 0; i < SECOND_HEAP_TRIES && !done; i++) {
        struct thread *t;
        struct err *e = thread_start("heap", heap_shorten, &done, &t);
        if (e) {
            err_free(e);
            return;
        }
        thread_join(t);
    }
}
#endif

/* Under a thread sanitizer nothing is in the C library's heap, which two threads then may not
 * trim at the same time: each would make it ready first. */
void heap_give_back(void)
{
#if !defined(__SANITIZE_THREAD__)
    malloc_trim(0);
    if (ours)
        shorten_second_heap();
#endif
}

void heap_empty_own(void)
{
    empty_own_store();
    heap_shorten_own();
}

#endif
