/* A dictionary dealt between ranks in the test's process, and the one of a rank that has all
 * samples. */
#ifndef DRPS_TESTS_DEALT_JOB_H
#define DRPS_TESTS_DEALT_JOB_H

#include "index/dictionary/dealt/drps_dict_dealt.h"
#include "index/dictionary/dict_data.h"
#include "support/net_job.h"

struct dealt_job {
    const struct data *data;
    struct dict_options options; /* but for memory_bytes */
    uint32_t first_row, count;
    size_t first[NET_RANKS + 1]; /* samples of each rank */
    uint64_t memory[NET_RANKS];  /* of each rank */
    char dir[NET_RANKS][SCRATCH_PATH_BYTES];
    const struct drps_io *io[NET_RANKS]; /* NULL: the system's */
    /* Called in each rank's thread, before anything; or NULL. */
    void (*begin)(uint32_t rank, void *ctx);
    void *ctx;

    /* What came out. */
    uint32_t *row; /* own: [nnz] placed ids */
    int rc[NET_RANKS];
    struct drps_err err[NET_RANKS];
    uint64_t rows[NET_RANKS][2];
    size_t generations[NET_RANKS];
    struct dict_dealt_sent sent[NET_RANKS];
};

/* Samples dealt evenly in runs, folders "rank-R" made, memory for all. */
struct dealt_job *dealt_job_new(struct scratch *s, const struct data *data, uint32_t count);
void dealt_job_free(struct dealt_job *job);
/* On all ranks at once. */
void dealt_job_run(struct dealt_job *job, enum net_kind kind);

/* drps_dict_place() of all samples in folder "whole", which is made: rows into rows_out and row_out
 * [nnz]. */
void dealt_job_whole(struct scratch *s, const struct dealt_job *job, uint64_t rows_out[2],
                     uint32_t *row_out);

#endif
