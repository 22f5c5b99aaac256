/*
 * A struct drps_io over a real folder that can lose power. It knows what is durable, as strictly as
 * POSIX says it: fsync of a file makes its bytes and its size last, fsync of a folder its entries.
 * Everything else is done to the real folder at once and kept in a journal. power_found() makes of
 * both what a machine may find that starts again.
 *
 * Calls fail, or move less than asked for, by a fault_io on top of it. Files whose I/O passes by it
 * (databases) are seen when their folder is synced, when they are opened, or when the power goes.
 * A struct drps_aio on it has threads, whose calls come through here; with power_see_requests()
 * io_uring, whose writes may be found from when they were asked for, and are synced only by a sync
 * after they have finished. Paths outside of the folder are passed on. Regular files and folders
 * only. Threads: any, as for every drps_io.
 */
#ifndef DRPS_TESTS_POWER_H
#define DRPS_TESTS_POWER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/drps_io.h"
#include "support/power_disk.h"

enum power_calls {
    POWER_CHANGES = 1, /* calls that have changed a byte, a size or a name */
    POWER_SYNCS = 2,
};
enum { POWER_FILES = 4096 };

struct power {
    struct drps_io io;           /* what the code under test gets */
    const struct drps_io *inner; /* borrowed */
    atomic_int off;              /* every call fails with -EIO */
    atomic_long requests;        /* that went to io_uring */

    pthread_mutex_t lock; /* of the rest, and of every call that changes something */
    char *root;           /* own */
    struct disk disk;
    struct disk_node *opened[POWER_FILES]; /* by descriptor; NULL: not in the folder */
    unsigned calls;                        /* POWER_x | ... */
    long left, left_to_lose;               /* 1: the next one; less: never */
};

/* What is in the folder `root`, an absolute path, is durable. power_free() it. */
struct power *power_new(const struct drps_io *inner, const char *root);
void power_free(struct power *p);

/* Let requests go to io_uring where there is one. A write counts as a change when it has finished.
 */
void power_see_requests(struct power *p);

/* The power goes at the k-th call from now on of those in `calls`: a change is done and may be
 * found, a sync has no effect. */
void power_cut_at(struct power *p, unsigned calls, long k);

/* The power goes now. */
void power_cut(struct power *p);

/* The k-th sync from now on fails with -EIO. What it should have written is lost, though readers
 * see it and later syncs succeed: so Linux does. */
void power_lose_sync_at(struct power *p, long k);

/* Make the folder `to` of what may be found: `choice` is an enum disk_choice or a seed. As often as
 * you like, with other choices; usually after the cut. Returns 0 or -errno. */
int power_found(struct power *p, uint64_t choice, const char *to);

/* A number for what power_found() makes: equal where that is equal. */
uint64_t power_found_sum(struct power *p, uint64_t choice);

#endif
