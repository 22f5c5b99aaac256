/*
 * Small plans of every shape for fuzz targets of whole tools: made once a process, in a temporary
 * folder that goes away with it.
 */
#ifndef DRPS_TESTS_BASE_PLANS_H
#define DRPS_TESTS_BASE_PLANS_H

#include "support/scratch.h"

enum base_plan {
    BASE_LOR,         /* numbers as names, blocks by pattern */
    BASE_FM,          /* wide rows: small memories cut them into several windows */
    BASE_GRID,        /* ratings in a grid, with lanes */
    BASE_CSV,         /* strings as names */
    BASE_RANKS,       /* two workers */
    BASE_CIRCULATING, /* ratings of two workers, between which ranges of rows circulate */
    BASE_SERVER,      /* three workers, of which one is the server, too */
    BASE_SEPARATE,    /* two servers, and a worker that has no rows */
    BASE_TOPICS,      /* documents with rows of their own */
    BASE_OWN,         /* a loss that is a text, samples with rows of their own */
    BASE_OUTPUTS, /* a loss that is a text, numbers as labels and several outputs; two workers */
    BASE_PLANS
};

struct base {
    char plan[SCRATCH_PATH_BYTES];
    char input[SCRATCH_PATH_BYTES]; /* the samples that it was made of */
    uint32_t ranks;
};

/* The folder of this process, below which all others lie; removed when the process ends in good
 * order. */
struct scratch *base_scratch(void);

/* Borrowed for ever. */
const struct base *base_plan(enum base_plan which);

#endif
