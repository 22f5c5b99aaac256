/*
 * Keeps the kernel from reading ahead in the files that a library has mapped below one folder.
 *
 * A library that maps its files takes page faults, and around each the kernel reads up to the
 * device's read-ahead (128 KiB to 8 MiB) for 4 KiB that were wanted. madvise(MADV_RANDOM) stops
 * that, but must be given for every mapping. The library makes a mapping when it has written a
 * file, and soon after that removes others: whenever the folder's time of change has moved, and
 * from time to time anyway, the process's list of mappings is looked through. A mapping that
 * vanishes in between makes the advice fail or hit other memory, where it only costs speed.
 */
#ifndef DRPS_KV_MAPPED_H
#define DRPS_KV_MAPPED_H

#include <pthread.h>
#include <stddef.h>
#include <time.h>

struct drps_mapped {
    pthread_mutex_t lock;
    char *folder;            /* own: absolute, with a final slash; NULL: not in use */
    unsigned calls_left;     /* until the mappings are looked through although nothing changed */
    struct timespec changed; /* the folder's time of change at the last look */
    int alive;               /* 1: the lock exists */
};

/* The folder need not exist yet. 0 or -errno; drps_mapped_destroy() is yours in both cases. */
int drps_mapped_init(struct drps_mapped *m, const char *folder);
void drps_mapped_destroy(struct drps_mapped *m);

/* Call before each read and write of the library: costs about a microsecond. Any thread. */
void drps_mapped_check(struct drps_mapped *m);

#endif
