/*
 * What the sources of the feed share: feed.c opens the plan's files and reads ahead, feed_next.c
 * takes batches from what was read. Private to engine/step/.
 */
#ifndef DRPS_ENGINE_STEP_FEED_INTERNAL_H
#define DRPS_ENGINE_STEP_FEED_INTERNAL_H

#include "base/record/drps_recstream.h"
#include "engine/step/drps_feed.h"
#include "index/plan/drps_round.h"

/* Bodies and shares are the worker's, row lists and positions the server's. */
enum feed_file { BODIES, LISTS, SHARES, POSITIONS, FILES };

struct drps_feed {
    const struct drps_plan *plan;
    uint32_t common; /* rows that all batches have */
    unsigned files;  /* that this plan has: the first two, or all */
    struct drps_recfile *file[FILES];
    struct drps_recstream *stream[FILES];
    uint32_t *ids; /* own: [max_round_rows] of the row list at hand */
    uint32_t shares[DRPS_PLAN_WORKERS_MAX];
    struct feed_union {
        uint32_t *ids;       /* own: [max_round_rows] */
        uint32_t *positions; /* own: [max_round_uses] */
        size_t part[DRPS_PLAN_WORKERS_MAX + 1];
    } unions[2];         /* of a rank: the one that was taken last, and the one before */
    unsigned union_n;    /* taken so far */
    void *record[FILES]; /* own: a batch's records, read on their own */
    void *plain;         /* own: [max_body_bytes] a body that came from another rank, unpacked */
    size_t record_cap[FILES];
    _Atomic uint64_t record_bytes, record_calls; /* read on their own, by the server's thread;
                                                    statistics read them meanwhile */
    uint64_t steps;                              /* of an epoch */
    double lists_share; /* what row lists are of their and the bodies' bytes */
    int keep;
    uint64_t at, list_at; /* step of the next batch, and row list, within its epoch */
    struct seen {
        uint64_t samples, nnz, largest; /* of training; samples of the largest batch */
        uint64_t steps;                 /* added up so far: each step of an epoch once */
    } seen;
};

#endif
