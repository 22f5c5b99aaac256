/* Whether there is room on the disk for what training will write. Private to engine/train/. */
#ifndef DRPS_ENGINE_TRAIN_SPACE_H
#define DRPS_ENGINE_TRAIN_SPACE_H

#include <stdint.h>

#include "engine/train/drps_memory.h"
#include "index/plan/drps_plan.h"

/* What a training run will write, in bytes. */
struct drps_space {
    uint64_t store;   /* rows with optimizer state; 0: in memory */
    uint64_t more;    /* that the store may take beside that, with windows that are cut for the run;
                         UINT64_MAX: it does not say */
    int reserved;     /* the store sets its room aside when it is opened */
    uint64_t trained; /* parameters and names, for which room is set aside too */
    uint64_t scan;    /* rows on their way into placed order: set aside, too */
    uint64_t database; /* the model, once store and scan are gone */
    uint64_t from;     /* rows that training begins with; written before anything else is opened */
};

/* Returns the bytes that a store takes at least for rows with optimizer state: none in memory,
 * relay's run file all of them once (up to a quarter more, which opening the store tells), blocks
 * in a file half as much again. */
uint64_t drps_space_of_store(const struct drps_memory *memory, uint64_t rows, uint64_t row_bytes);

/* Returns the bytes that visiting all rows in placed order takes beside the store: param_bytes a
 * row. */
uint64_t drps_space_of_scan(const struct drps_memory *memory, uint64_t rows, uint64_t param_bytes);

/* Returns the most that a store takes beside drps_space_of_store(): none in memory; relay's run
 * file a quarter, a chunk for each run twice, and windows that are cut anew, which have row_uses
 * rows at most. seek_bytes as in drps_store_config, 0: the disk was not asked yet. UINT64_MAX:
 * other stores do not say. */
uint64_t drps_space_of_store_more(const struct drps_memory *memory, uint64_t rows,
                                  uint64_t row_bytes, uint64_t row_uses, uint64_t seek_bytes);

/* What all of it needs, before any of it is there; and what is still to come once all room is set
 * aside. */
uint64_t drps_space_needed(const struct drps_space *space);
uint64_t drps_space_most(const struct drps_space *space); /* with `more`; 0: nobody knows */
uint64_t drps_space_still_needed(const struct drps_space *space);

#endif
