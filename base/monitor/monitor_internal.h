/* The list of numbers: monitor.c fills it, render.c writes it. Private to base/monitor/. */
#ifndef DRPS_BASE_MONITOR_INTERNAL_H
#define DRPS_BASE_MONITOR_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/monitor/drps_monitor.h"

struct drps_monitor_number {
    struct drps_monitor_number *next; /* of the same metric */
    char *value;                      /* own: of the label; NULL: none */
    _Atomic double now;               /* of a histogram: the sum */
    const double *bounds;             /* [buckets - 1]; a histogram's */
    size_t buckets;                   /* 0: no histogram */
    _Atomic uint64_t counts[];        /* [buckets] */
};

/* All numbers of one metric. */
struct family {
    struct family *next;
    const struct drps_monitor_metric *metric;
    struct drps_monitor_number *first, **last;
};

struct drps_monitor {
    pthread_mutex_t lock; /* of the list: adding and rendering */
    struct family *first, **last;
    uint32_t rank;
    atomic_int failed; /* a number could not be added */
};

#endif
