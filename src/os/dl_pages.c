#include "os/dl_pages.h"

#include "os/heap.h"
#include "os/pages.h"

#include <fcntl.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#define ENTRIES 512u /* pages that are looked at with one read */

/* A page's entry in pagemap (Linux, admin-guide/mm/pagemap.rst). */
#define ENTRY_PRESENT (1ull << 63)
#define ENTRY_SWAPPED (1ull << 62)
#define ENTRY_OF_FILE (1ull << 61)

/* Forgets the pages [from, to) of a mapping, `at` being its first. */
static void forget_run(uintptr_t at, size_t page, size_t from, size_t to)
{
    if (from < to)
        pages_forget((void *)(at + from * page), (to - from) * page);
}

/* A page of a file that was written is the process's own; to forget it would undo the writing. */
static int is_unwritten(uint64_t entry)
{
    return (entry & ENTRY_PRESENT) && (entry & ENTRY_OF_FILE) && !(entry & ENTRY_SWAPPED);
}

/* Forgets the unwritten pages of [begin, end), both at the beginning of a page. */
static void forget_unwritten(int pagemap, uintptr_t begin, uintptr_t end, size_t page)
{
    uint64_t entries[ENTRIES];
    for (uintptr_t at = begin; at < end; at += ENTRIES * page) {
        size_t count = (end - at) / page < ENTRIES ? (end - at) / page : ENTRIES;
        size_t bytes = count * sizeof(entries[0]);
        if (pread(pagemap, entries, bytes, (off_t)(at / page * sizeof(entries[0]))) !=
            (ssize_t)bytes)
            return;
        size_t from = 0;
        for (size_t i = 0; i < count; i++) {
            if (is_unwritten(entries[i]))
                continue;
            forget_run(at, page, from, i);
            from = i + 1;
        }
        forget_run(at, page, from, count);
    }
}

/* Called with the C library's lock, so that the library is not unloaded meanwhile. */
static int forget_library(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    const int *pagemap = arg;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type != PT_LOAD || (part->p_flags & PF_W))
            continue;
        uintptr_t begin = info->dlpi_addr + part->p_vaddr;
        uintptr_t end = (begin + part->p_memsz + page - 1) / page * page;
        forget_unwritten(*pagemap, begin / page * page, end, page);
    }
    return 0;
}

void dl_pages_forget(void)
{
    if (!heap_is_own())
        return;
    int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    if (pagemap < 0)
        return;
    dl_iterate_phdr(forget_library, &pagemap);
    close(pagemap);
}
