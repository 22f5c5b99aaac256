/*
 * Memory, and threads, that run out: the k-th allocation of the library from a moment on fails. The
 * test is linked so that calls of the allocating functions come here (drps_test_allocations() in
 * tests/CMakeLists.txt); shared libraries keep their own, but for jansson. Threads: any.
 */
#ifndef DRPS_TESTS_ALLOC_FAULT_H
#define DRPS_TESTS_ALLOC_FAULT_H

#include <stddef.h>

enum alloc_fault {
    FAULT_MEMORY, /* malloc(), calloc(), realloc(), aligned_alloc(), strdup(), strndup(),
                     asprintf(), mmap(): -ENOMEM */
    FAULT_THREAD, /* pthread_create(): -EAGAIN */
};

/* From now on the k-th call of this kind fails, once. */
void alloc_fault_arm(enum alloc_fault kind, long k);

/* No call fails any more. Returns whether one has. */
int alloc_fault_disarm(void);

/* Where the call that failed was made: an address for `addr2line -e PROGRAM`; 0 in jansson, which
 * does not always tell its caller why it failed. */
size_t alloc_fault_where(void);

#endif
