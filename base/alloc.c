/* Allocation with checked products, and large arrays straight from the kernel. */
#include "base/drps_alloc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

void *drps_array_new(size_t n, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes)) return NULL;
    return malloc(bytes ? bytes : 1);
}

int drps_array_grow(void *array, size_t *cap, size_t n, size_t size)
{
    size_t want = *cap > SIZE_MAX / 2 ? n : *cap * 2;
    if (want < n) want = n;
    if (want < 16) want = 16;
    size_t bytes;
    void *old;
    if (__builtin_mul_overflow(want, size, &bytes)) return -ENOMEM;
    memcpy(&old, array, sizeof(old));
    void *grown = realloc(old, bytes);
    if (!grown) return -ENOMEM;
    memcpy(array, &grown, sizeof(grown));
    *cap = want;
    return 0;
}

void *drps_pages_new(size_t bytes)
{
    void *p =
        mmap(NULL, bytes ? bytes : 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return NULL;
    (void)madvise(p, bytes, MADV_HUGEPAGE); /* a wish: smaller pages work too */
    return p;
}

void drps_pages_free(void *pages, size_t bytes)
{
    if (pages) (void)munmap(pages, bytes ? bytes : 1);
}
