/* Memory for arrays whose size is computed: products are checked, and large arrays are aligned to
 * huge pages. */
#ifndef DRPS_ALLOC_H
#define DRPS_ALLOC_H

#include <stddef.h>
#include <stdint.h>

/* Returns a new array of n * size bytes, uninitialised; NULL on overflow or when memory is gone.
 * free() it. n = 0 gives a valid pointer. */
void *drps_array_new(size_t n, size_t size);

/* Grows an array that has too little room, as drps_array_reserve() says. */
int drps_array_grow(void *array, size_t *cap, size_t n, size_t size);

/*
 * Grow *array to have room for at least n elements of `size` bytes (*cap elements, at least
 * doubled). Returns 0 or -ENOMEM with the array unchanged. *array starts as NULL with *cap 0; after
 * a success it is not NULL, even for n = 0.
 */
static inline int drps_array_reserve(void *array, size_t *cap, size_t n, size_t size)
{
    /* Where nothing is allocated yet, n = 0 grows too: callers pass the pointer on to memcpy(). */
    return n <= *cap && *cap ? 0 : drps_array_grow(array, cap, n, size);
}

/* Returns zeroed memory from the kernel, page aligned, backed by huge pages where the kernel
 * agrees; NULL on failure. */
void *drps_pages_new(size_t bytes);
void drps_pages_free(void *pages, size_t bytes);

#endif
