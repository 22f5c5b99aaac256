/*
 * A plan that several machines make together: what they settle and send between the phases that
 * each runs on its own samples. Shared inside index/.
 *
 * Each rank reads its own inputs, and makes the folder of its own rank: its worker trains on the
 * samples that it has read, unless they are dealt, and its server has a range of the rows. The plan
 * is that which one machine makes of the inputs of all ranks, in the order of ranks.
 *
 *   read.c      what the samples of all ranks are: how many, their labels, their classes
 *   dictionary  keys are counted and numbered by the rank that a hash of them names
 *               (index/dictionary/dealt/)
 *   forecast.c  how many bytes will be sent
 *   move.c      where samples are dealt: each goes to the worker whose batch has it
 *   batches.c   what the batches of all ranks come to
 *   lists.c     the rows of each batch, to the ranks that hold them
 *   parts.c     what the ranks' folders hold, for plan.json of the whole
 *
 * Everything that comes from another rank is checked: DRPS_E_PROTO names the rank.
 */
#ifndef DRPS_INDEX_TOGETHER_TOGETHER_H
#define DRPS_INDEX_TOGETHER_TOGETHER_H

#include "index/labels/drps_constant.h"
#include "index/plan/drps_window.h"
#include "index/samples/drps_assign.h"
#include "index/samples/drps_read_samples.h"
#include "index/swap/drps_swap.h"

/* ---- Beginning and end (options.c, inputs.c, begin.c, join.c) ---- */

struct drps_index_options;

/* What the options of several machines can be: DRPS_E_CONFIG says what cannot be made together.
 * Workers, and where they are not given partition and samples, are filled in. */
DRPS_MUST_CHECK
int drps_together_check(struct drps_index_options *options, struct drps_err *err);

/*
 * Before anything is made: all ranks must have been started with the same options. *out_own is set
 * to the folder that this rank makes first: NULL on rank 0, which makes options->out. DRPS_E_CONFIG
 * names a rank with others; -EEXIST: options->out exists, and is not to be replaced. Sets
 * options->first_input.
 */
DRPS_MUST_CHECK
int drps_together_begin(const struct swap_ranks *ranks, struct drps_index_options *options,
                        char **out_own, struct drps_err *err);

/* The file of rank 0's folder, to those of all. */
DRPS_MUST_CHECK
int drps_together_copy(struct swap_ranks *ranks, const char *dir, const char *name,
                       struct drps_err *err);

/* This rank's share of files that all ranks have. */
DRPS_MUST_CHECK
int drps_together_share(const struct swap_ranks *ranks, const struct drps_io *io,
                        const char *const *paths, size_t n, struct drps_reader_share *out,
                        struct drps_err *err);

/* Return when all ranks have come here. */
DRPS_MUST_CHECK
int drps_together_await_all(const struct swap_ranks *ranks, struct drps_err *err);

/*
 * A rank above 0 has made the plan `own`, which holds its folder alone, and rank 0 has made `out`:
 * where both are on one disk the folder goes there; else `own` becomes `out`, which is replaced if
 * it is there and `replace` is set.
 */
DRPS_MUST_CHECK
int drps_together_join(const struct swap_ranks *ranks, const struct drps_io *io, const char *own,
                       const char *out, int replace, struct drps_err *err);

/* ---- After reading (read.c) ---- */

/*
 * Numbers and labels in p become those of the samples of all ranks. Where labels are classes, so
 * does p->classes, and *class_of [as many as this rank had] are the numbers there of what this rank
 * has numbered by itself; free() it. NULL: labels are numbers. train_of and test_of [count]: how
 * many samples each rank has.
 */
DRPS_MUST_CHECK
int drps_together_read(struct swap_ranks *ranks, struct read_samples *p, uint32_t **class_of,
                       uint64_t *train_of, uint64_t *test_of, struct drps_err *err);

/* ---- What will be sent (forecast.c) ---- */

struct together_forecast {
    struct dict *dict;                  /* of this rank, which has all its samples */
    const uint64_t *train_of, *test_of; /* [count] samples of each rank */
    uint64_t nnz;                       /* entries of all samples, of all ranks */
    uint64_t batch_size;
    int kept, homes; /* 1: samples stay; rows go to whom uses them most */
    uint64_t seed;
};

/*
 * Forecast how many bytes this rank will send to others, of all that is sent from here on, before
 * any of it is. Features are known by then, how many, and how many samples have each; of one in 64,
 * chosen by hash, ranks tell each other, from which follows how many rows there are together and
 * which share of their uses is of rows that others hold. What batches have of them is expected:
 * samples are in random ones. *bytes_out: 0: there are too many ranks for it.
 */
DRPS_MUST_CHECK
int drps_together_forecast(struct swap_ranks *ranks, const struct together_forecast *f,
                           uint64_t *bytes_out, struct drps_err *err);

/* ---- Which samples are whose (move.c) ---- */

/* Workers keep the samples that they have read: so many each. Their batches are as many as
 * anybody's. */
void drps_together_keep(const struct swap_ranks *ranks, const uint64_t *samples_of,
                        uint64_t batch_size, struct assignment *out);

struct together_move {
    const char *dir;       /* for scratch files */
    const uint32_t *map;   /* provisional to placed ids; NULL: samples have these */
    const float *label_of; /* what labels are that were read as numbers of classes; NULL: as read */
    size_t classes;        /* labels are numbers below that; 0: any */
    const uint64_t *samples_of; /* [count] that each rank has */
    uint64_t rows;              /* placed ids are below that, or DRPS_NO_ROW */
    uint32_t fields;            /* entries have fields; of training they are below that; 0: none */
    int test;
    uint64_t batch_size;
    uint64_t memory_bytes;
    int by_order; /* 1: the samples of all ranks are dealt in the order of their order numbers; 0:
                     those of a rank come in the order of arrival, behind those of the ranks before
                   */
};

/* Replace the spool by one with the samples of this rank's batches, where those of all ranks are
 * dealt in turn; they have placed ids, and the labels that label_of gives. */
DRPS_MUST_CHECK
int drps_together_deal(struct swap_ranks *ranks, const struct together_move *move, const char *name,
                       struct spool **spool, struct assignment *out, struct drps_err *err);

/* Returns how many batches all ranks have, and how many this one: a record each. */
uint64_t drps_together_batches(const struct assignment *a);
uint64_t drps_together_own_batches(const struct assignment *a, uint32_t rank);

/* ---- After batches are made (batches.c) ---- */

/* What is counted while batches are made, of one rank and then of all. */
struct together_batches {
    uint64_t ones, test_unseen;
    uint64_t max_batch_samples, max_batch_rows, max_batch_nnz, max_body_bytes;
    double most; /* that a training sample weighs */
    int weighted;
};

/* Add up what all ranks have counted. labels [2] are of training and of evaluation. */
DRPS_MUST_CHECK
int drps_together_sum_batches(struct swap_ranks *ranks, struct together_batches *sums,
                              struct drps_label_sums labels[2], struct drps_err *err);

/* ---- Lists of rows (lists.c) ---- */

struct together_lists {
    const struct drps_io *io;
    const char *from; /* data.rec, rows.rec: this rank's batches, one after another */
    const char *to;   /* the same files get a record for each batch of all ranks: of others the rows
                         that this rank holds, and no samples */
    uint64_t batches, eval_batches; /* of all ranks */
    const uint32_t *first;          /* [count + 1] rows of each rank */
    uint64_t memory_bytes;
};
DRPS_MUST_CHECK
int drps_together_share_lists(struct swap_ranks *ranks, const struct together_lists *lists,
                              struct drps_err *err);

/* ---- The whole (parts.c) ---- */

/* A part's numbers, of every rank: info_out [count] are copies of *info with those of the ranks,
 * forecast_out [count][DRPS_FORECASTS]. All ranks have as many forecasts, for the same stores. */
DRPS_MUST_CHECK
int drps_together_share_part(struct swap_ranks *ranks, const struct drps_plan_info *info,
                             const struct drps_forecast *forecast, size_t forecasts,
                             struct drps_plan_info *info_out, struct drps_forecast *forecast_out,
                             struct drps_err *err);

#endif
