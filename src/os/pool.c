#include "os/pool.h"

#include "base/budget.h"
#include "base/fault.h"
#include "base/mem.h"
#include "os/mutex.h"
#include "os/pages.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HUGE_BYTES  ((size_t)2 << 20)
#define LEAST_BYTES ((size_t)4096) /* charged for a mapping: a page of most machines */
#define CLASSES     64             /* classes of sizes, by power of two */

/* Memory in mappings that is not charged to anybody is kept until all mappings together have
 * this part of the budget. */
#define PLENTY_PART 8u

/* A buffer of the pool. Its header is heap memory, so that a warm mapping can be returned
 * without touching its pages. */
struct pooled {
    struct buf buf; /* first member, because the buffer is freed through it */
    struct pooled *next;
    void *map;
    size_t map_bytes; /* 0: the bytes are heap memory after the header */
    unsigned list;    /* in `warm`, when it is free */
    bool lent;        /* it has huge pages, and its user may not make it find others */
    /* bytes charged for a mapping; heap memory is always charged in full */
    size_t charged;
    /* charged for heap memory instead of the budget; NULL = the budget */
    struct budget_account *account;
    /* At most this much of a mapping has memory: the most that was charged for it at one time.
     * Counted in `resident`. */
    size_t touched;
    /* At least this much of a mapping has memory: the most that arrived in it. */
    size_t there;
    /* earlier users could write to this many bytes of a mapping; the bytes after them are zeros */
    size_t dirty;
    time_ns last_used;
};

/* Held while memory is given back, until `resident` is updated: a thread that needs room waits
 * for what others give back. */
static struct mutex giving_back = MUTEX_INIT(MUTEX_RANK_TRIM);

static struct mutex lock = MUTEX_INIT(MUTEX_RANK_POOL); /* guards the variables below */
/* most recently used first; mappings with huge pages have lists of their own */
static struct pooled *warm[2 * CLASSES];
/* how many mappings of a class are lent */
static unsigned lent[CLASSES];
/* being unmapped step by step, from their ends */
static struct pooled *leaving;
static size_t resident; /* memory of all mappings, in use or warm */

static unsigned class_of(size_t size)
{
    return 64 - (unsigned)__builtin_clzl(size - 1);
}

static void heap_free(struct buf *b)
{
    const struct pooled *p = (const struct pooled *)b;
    if (p->account)
        budget_drop(p->account, b->size);
    else
        budget_release(b->size);
    mem_free(b);
}

/* The charge is released last: when others can use it, a trim must already find the memory. */
static void mapped_free(struct buf *b)
{
    struct pooled *p = (struct pooled *)b;
    size_t charged = p->charged;
    if (b->size > p->dirty)
        p->dirty = b->size;
    p->last_used = clock_now_ns();
    mutex_lock(&lock);
    if (p->lent)
        lent[p->list - CLASSES]--;
    p->lent = false;
    p->next = warm[p->list];
    warm[p->list] = p;
    mutex_unlock(&lock);
    budget_release(charged);
}

/* Maps memory with small pages, aligned to huge pages if it is large enough: maps more and
 * unmaps the parts before and after. */
static void *map_pages(size_t bytes)
{
    if (fault_hit())
        return NULL;
    size_t extra = bytes >= HUGE_BYTES ? HUGE_BYTES : 0;
    char *p = mmap(NULL, bytes + extra, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    size_t head = extra ? -(uintptr_t)p & (HUGE_BYTES - 1) : 0;
    if (head)
        munmap(p, head);
    if (extra > head)
        munmap(p + head + bytes, extra - head);
    madvise(p + head, bytes, MADV_NOHUGEPAGE);
    return p + head;
}

/* What has no memory yet gets huge pages. The beginning always uses small ones: finding and
 * clearing a huge page takes up to 7 ms, and a peer that announces much may send little. */
static void use_huge_pages(struct pooled *p)
{
    if (p->list >= CLASSES)
        return;
    madvise((char *)p->map + HUGE_BYTES, p->map_bytes - HUGE_BYTES, MADV_HUGEPAGE);
    p->list += CLASSES;
}

/* Notes that `bytes` of a mapping have memory. If all mappings together have more memory than
 * the budget, warm mappings are given back at once. */
static void touch(struct pooled *p, size_t bytes)
{
    if (!p->map || bytes <= p->touched)
        return;
    mutex_lock(&lock);
    resident += bytes - p->touched;
    bool over = resident > budget_limit();
    mutex_unlock(&lock);
    p->touched = bytes;
    if (over)
        pool_trim(TIME_NEVER);
}

static void forget_from(struct pooled *p, size_t keep)
{
    mutex_lock(&giving_back);
    pages_forget((char *)p->map + keep, p->map_bytes - keep);
    mutex_lock(&lock);
    resident -= p->touched - keep;
    mutex_unlock(&lock);
    mutex_unlock(&giving_back);
    p->touched = keep;
    p->there = p->there < keep ? p->there : keep;
    p->dirty = p->dirty < keep ? p->dirty : keep;
}

static size_t pool_rounded(size_t bytes, size_t unit)
{
    return (bytes + unit - 1) & ~(unit - 1);
}

/* A warm mapping may have more memory than its next user is charged for. */
static void forget_rest(struct pooled *p, size_t charged)
{
    size_t page = charged < HUGE_BYTES ? (size_t)sysconf(_SC_PAGESIZE) : HUGE_BYTES;
    size_t keep = pool_rounded(charged, page);
    if (p->touched > keep)
        forget_from(p, keep);
}

static struct pooled *take_first(unsigned list)
{
    struct pooled *p = warm[list];
    if (p)
        warm[list] = p->next;
    return p;
}

/* A mapping with huge pages for who may not have new ones: where the bytes will lie there is
 * memory already. */
static struct pooled *borrow(unsigned class, size_t size)
{
    const struct pooled *first = warm[CLASSES + class];
    if (!first || pool_rounded(first->there, HUGE_BYTES) < size)
        return NULL;
    struct pooled *p = take_first(CLASSES + class);
    p->lent = true;
    lent[class]++;
    return p;
}

static struct pooled *map_new(unsigned class)
{
    void *map = map_pages((size_t)1 << class);
    if (!map)
        return NULL;
    struct pooled *p = MEM_NEW(struct pooled);
    p->map = map;
    p->map_bytes = (size_t)1 << class;
    p->list = class;
    return p;
}

/* Memory that a warm mapping has is better than new memory, whatever its pages are. It keeps
 * what its user is not charged for while there is plenty. While some mappings are lent, nobody
 * maps new huge pages in their place: else who borrows them makes others wait for new ones. */
static struct pooled *mapped_new(size_t size, size_t charge, bool huge)
{
    unsigned class = class_of(size);
    if (class >= CLASSES)
        return NULL;
    huge = huge && size > HUGE_BYTES;
    mutex_lock(&lock);
    bool plenty = resident <= budget_limit() / PLENTY_PART;
    struct pooled *p = huge ? take_first(CLASSES + class) : NULL;
    if (!p && lent[class])
        huge = false;
    if (!p)
        p = take_first(class);
    if (!p && !huge && plenty)
        p = borrow(class, size);
    mutex_unlock(&lock);
    if (p && !plenty)
        forget_rest(p, charge);
    if (!p)
        p = map_new(class);
    if (!p)
        return NULL;
    if (huge)
        use_huge_pages(p);
    buf_init(&p->buf, p->map, size, mapped_free);
    return p;
}

/* Makes the header and the bytes in one piece of heap memory, the bytes aligned to 64. */
static struct pooled *heap_new(size_t size)
{
    size_t head = (sizeof(struct pooled) + 63) & ~(size_t)63;
    struct pooled *p = mem_try_alloc(head + size, 64);
    if (!p)
        return NULL;
    *p = (struct pooled){0};
    buf_init(&p->buf, (char *)p + head, size, heap_free);
    return p;
}

static struct err *no_room(size_t bytes)
{
    return budget_busy(bytes, "no room for %zu bytes", bytes);
}

static struct err *pool_no_memory(size_t bytes)
{
    return err_new(STATUS_UNAVAILABLE, "no memory for %zu bytes: the system gave none", bytes);
}

static struct err *pool_make(size_t size, size_t charge, bool huge, struct buf **ret)
{
    if (!budget_charge(charge))
        return no_room(size);
    struct pooled *p = size >= POOL_MAPPED_BYTES ? mapped_new(size, charge, huge) : heap_new(size);
    if (!p) {
        budget_release(charge);
        return pool_no_memory(size);
    }
    p->charged = charge;
    touch(p, charge);
    *ret = &p->buf;
    return NULL;
}

struct err *pool_buf(size_t size, struct buf **ret)
{
    return pool_make(size, size, true, ret);
}

struct err *pool_buf_zeroed(size_t size, struct buf **ret)
{
    struct err *e = pool_make(size, size, true, ret);
    if (e)
        return e;
    const struct pooled *p = (const struct pooled *)*ret;
    size_t dirty = !p->map || p->dirty > size ? size : p->dirty;
    memset((*ret)->data, 0, dirty);
    return NULL;
}

/* What is charged for so many bytes of `size`: the memory behind them. Up to the first huge page
 * it doubles, so that there are few steps to it. */
static size_t pool_step(size_t bytes, size_t size)
{
    size_t step = bytes <= LEAST_BYTES  ? LEAST_BYTES
                  : bytes <= HUGE_BYTES ? (size_t)1 << class_of(bytes)
                                        : pool_rounded(bytes, HUGE_BYTES);
    return step < size ? step : size;
}

/* A peer that has no room even for the beginning is told so at once, but is not charged for it. */
static struct err *arriving(size_t size, size_t arrived, bool huge, struct buf **ret)
{
    size_t charge = size < POOL_MAPPED_BYTES ? size : pool_step(arrived, size);
    if (!budget_room(size < HUGE_BYTES ? size : HUGE_BYTES))
        return no_room(size);
    return pool_make(size, charge, huge, ret);
}

struct err *pool_buf_arriving(size_t size, struct buf **ret)
{
    return arriving(size, 0, true, ret);
}

struct err *pool_buf_of(struct budget_account *account, size_t size, size_t arrived,
                        struct buf **ret)
{
    if (!account || size >= BUDGET_STEP)
        return arriving(size, arrived, size > HUGE_BYTES && budget_account_spend_proof(account),
                        ret);
    if (!budget_take(account, size))
        return no_room(size);
    struct pooled *p = heap_new(size);
    if (!p) {
        budget_drop(account, size);
        return pool_no_memory(size);
    }
    p->charged = size;
    p->account = account;
    *ret = &p->buf;
    return NULL;
}

void pool_whole(struct budget_account *account, size_t bytes)
{
    if (bytes > HUGE_BYTES)
        budget_account_prove(account);
}

size_t pool_room(struct buf *b, size_t bytes)
{
    struct pooled *p = (struct pooled *)b;
    if (bytes <= p->charged)
        return p->charged;
    size_t now = pool_step(bytes, p->buf.size);
    if (budget_charge_up(&p->charged, now))
        touch(p, now);
    return p->charged;
}

struct err *pool_arrived(struct buf *b, size_t bytes)
{
    struct pooled *p = (struct pooled *)b;
    if (pool_room(b, bytes) >= bytes) {
        p->there = p->there > bytes ? p->there : bytes;
        return NULL;
    }
    size_t now = pool_step(bytes, p->buf.size);
    touch(p, now); /* it may be written already */
    return no_room(now > budget_limit() ? now : now - p->charged);
}

/* Unlinks the buffers older than `before`. The list is ordered by last use, newest first, so
 * they are its tail. */
static struct pooled *cut_old(struct pooled **head, time_ns before, size_t *kept)
{
    while (*head && (*head)->last_used >= before) {
        *kept += (*head)->map_bytes;
        head = &(*head)->next;
    }
    struct pooled *old = *head;
    *head = NULL;
    return old;
}

/* Takes the buffers that were not used since `before` out of the pool. Returns how many bytes
 * stay warm. */
static size_t let_go(time_ns before)
{
    size_t kept = 0;
    mutex_lock(&lock);
    for (unsigned i = 0; i < 2 * CLASSES; i++) {
        struct pooled *old = cut_old(&warm[i], before, &kept);
        while (old) {
            struct pooled *next = old->next;
            old->next = leaving;
            leaving = old;
            old = next;
        }
    }
    mutex_unlock(&lock);
    return kept;
}

static struct pooled *take_leaving(void)
{
    mutex_lock(&lock);
    struct pooled *p = leaving;
    if (p)
        leaving = p->next;
    mutex_unlock(&lock);
    return p;
}

/* Puts back what is left of partly unmapped buffers. Returns how many bytes are still to be
 * unmapped. */
static size_t still_leaving(struct pooled *part)
{
    size_t bytes = 0;
    mutex_lock(&lock);
    if (part) {
        part->next = leaving;
        leaving = part;
    }
    for (const struct pooled *p = leaving; p; p = p->next)
        bytes += p->map_bytes;
    mutex_unlock(&lock);
    return bytes;
}

static void pool_shorten(struct pooled *p, size_t bytes)
{
    if (bytes < p->map_bytes)
        munmap((char *)p->map + bytes, p->map_bytes - bytes);
    p->map_bytes = bytes;
}

/* Unmaps the end of a buffer, at most `most` bytes that have memory. Returns how many these
 * were. */
static size_t shorten_some(struct pooled *p, size_t most)
{
    size_t touched = pool_rounded(p->touched, HUGE_BYTES);
    touched = touched < p->map_bytes ? touched : p->map_bytes;
    size_t n = touched < most ? touched : most;
    pool_shorten(p, touched - n);
    mutex_lock(&lock);
    resident -= p->touched - (touched - n);
    mutex_unlock(&lock);
    p->touched = touched - n;
    return n;
}

bool pool_trim_some(time_ns before, size_t most, size_t *ret_kept)
{
    mutex_lock(&giving_back);
    size_t kept = let_go(before);
    struct pooled *p = NULL;
    while (most && (p = take_leaving())) {
        most -= shorten_some(p, most);
        if (!p->map_bytes) {
            mem_free(p);
            p = NULL;
        }
    }
    size_t left = still_leaving(p);
    mutex_unlock(&giving_back);
    *ret_kept = kept + left;
    return left > 0;
}

size_t pool_trim(time_ns before)
{
    size_t kept;
    while (pool_trim_some(before, SIZE_MAX, &kept))
        ;
    return kept;
}
