/*
 * The part of a batch that is sent: C of its B samples, with vectors u that stand for all
 * (select/), as a batch and a list of rows of its own. Private to engine/cluster/sv/.
 */
#ifndef DRPS_ENGINE_CLUSTER_SV_CHOSEN_H
#define DRPS_ENGINE_CLUSTER_SV_CHOSEN_H

#include "base/drps_checksum.h"
#include "engine/cluster/sv/select/drps_select.h"
#include "index/plan/drps_batch.h"
#include "index/plan/drps_plan.h"

struct chosen {
    struct drps_select_options options; /* count 0: all */
    uint32_t dim;
    int has_bias;

    /* Of the batch that was chosen from last: */
    struct drps_piece list, body; /* as a message has them */
    struct drps_selected picked;  /* picks and u */

    float *slopes;                          /* own: [max_batch_samples][dim], the caller fills */
    uint32_t *first, *ids, *local, *starts; /* own */
    float *values, *labels, *u;             /* own */
    uint32_t *picks, *rows;                 /* own */
    uint16_t *narrow;                       /* own */
    float *error;  /* own: [rows][dim] what projecting has left wrong; NULL: nothing is projected */
    void *scratch; /* own: grows */
    size_t scratch_cap;
    unsigned char *packed, *room; /* own: list and body; what a body is packed in */
    size_t packed_cap, room_cap;
};

/* Room for batches of the plan, of a model of so many rows. options->count is not 0. */
DRPS_MUST_CHECK
int chosen_open(struct chosen *c, const struct drps_plan_info *info,
                const struct drps_select_options *options, uint64_t rows, struct drps_err *err);
void chosen_close(struct chosen *c);

/* Returns its memory, of a model of so many rows; count 0: none. */
uint64_t chosen_memory(const struct drps_plan_info *info, const struct drps_select_options *options,
                       uint64_t rows);

/* Choose of a batch whose rows are ids, and whose vectors u are in c->slopes. `seed`: another one
 * for each batch. -EDOM: training has diverged. */
DRPS_MUST_CHECK
int chosen_make(struct chosen *c, const struct drps_batch *b, const uint32_t *ids, uint64_t seed,
                struct drps_err *err);

#endif
