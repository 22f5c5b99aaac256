/*
 * Keeps the kernel from reading ahead in the files that a library has mapped below one folder.
 *
 * A library that maps its files takes page faults, and around each the kernel reads up to the device's read-ahead
 * (128 KiB to 8 MiB) for 4 KiB that were wanted. madvise(MADV_RANDOM) stops that, but must be given for every
 * mapping; the library makes them when it likes, so the process's list of mappings is looked through from time to
 * time. A mapping that vanishes in between makes the advice fail or hit other memory, where it only costs speed.
 */
#ifndef DRPS_KV_MAPPED_H
#define DRPS_KV_MAPPED_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

struct drps_mapped {
    pthread_mutex_t lock;
    char *folder;        /* own: absolute, with a final slash; NULL: not in use */
    uint64_t reads_left; /* until the next look */
    int alive;           /* the lock exists */
};

int drps_mapped_init(struct drps_mapped *m, const char *folder);
void drps_mapped_destroy(struct drps_mapped *m);

/* Call before n values are read. Any thread. */
void drps_mapped_before_read(struct drps_mapped *m, size_t n);

#endif
