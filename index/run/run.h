/*
 * One run of drps-index, and its phases: a file each, in the table of compile.c. A phase takes what
 * those before it have put into the run, and fills in more of `info`. Private to index/run/.
 */
#ifndef DRPS_INDEX_RUN_RUN_H
#define DRPS_INDEX_RUN_RUN_H

#include <stdint.h>

#include "base/folder/drps_stage.h"
#include "index/blocks/drps_make_blocks.h"
#include "index/drps_index.h"
#include "index/drps_progress.h"
#include "index/order/drps_grid.h"
#include "index/order/drps_mix.h"
#include "index/together/drps_together.h"
#include "index/plan/drps_algorithm.h"
#include "index/labels/drps_constant.h"
#include "index/run/parts.h"
#include "index/samples/drps_assign.h"
#include "index/samples/drps_read_samples.h"

/* Everything that the phases hand on. */
struct index_run {
    const struct drps_io *io;
    const struct drps_index_options *asked; /* as the caller has them; borrowed */
    struct drps_index_options options;      /* with defaults filled in */
    struct index_progress progress;         /* of the phase that runs */
    struct drps_stage stage;
    char *out;     /* own: the folder that a rank above 0 makes first; NULL: it makes options.out */
    char *scratch; /* own: folder for files of the run, removed at its end */
    char *laid;    /* own: where rows in blocks go: the plan, or scratch to be placed from */
    const char *batch_dir; /* where batches are made: there, or scratch if blocks renumber rows */
    char *whole; /* own: where batches and names of all are, when rows have their last numbers */
    struct drps_plan *from;     /* own: the plan that the run begins with; NULL: text */
    struct drps_plan *base;     /* own: that whose rows keep their numbers; NULL: none */
    struct read_samples parsed; /* until batches are made */
    uint32_t
        *row_homes; /* own: [info->rows] servers, where rows were placed before samples; or NULL */
    int drawn;      /* samples have negatives, and placed ids */
    int moved;      /* samples of several machines are dealt, and have placed ids */
    char **fields;  /* own: [fields_n] names of feature columns; NULL: they have none */
    size_t fields_n;
    struct drps_classes *classes; /* own: of labels; NULL: they are numbers */
    float *label_of; /* own: what labels are that were read as numbers of classes; NULL: as read */
    float *class_weights; /* own: by what batches hold of a class: its number, or 1 for the larger
                             label and 0 for the other; NULL: all 1 */
    struct assignment train, test; /* of workers; rounds are 0 where batches go to them in turn */
    uint32_t *block_first;         /* own: [info->blocks + 1] of all rows, until there are parts */
    struct drps_layers layers;     /* of a net; n is 0 where it is none */
    struct drps_plan_info *info;
    struct drps_index_result *result;
    uint32_t *range_first; /* own: of circulation; NULL: rows are not numbered by lane */
    struct part *parts;    /* own: [parts_n], one a rank */
    uint32_t parts_n;
    uint32_t own_first, own_end;        /* those of them that this run makes: all, or its rank's */
    struct drps_reader_share shares[2]; /* options.shared: of inputs, of tests */
    /* The next three are NULL unless several machines make the plan (options.ranks): how many
     * samples each has read, and for each class that this one numbered while it read, the number
     * that it has among the classes of all. */
    uint64_t *train_of, *test_of; /* own: [parts_n] */
    uint32_t *class_of;           /* own: [own_classes]; NULL: labels are numbers */
    size_t own_classes;
};

/* ---- Options (options.c) ---- */

/* Whether the memory limit is above what the machine has; then `text` says so. */
int drps_run_above_memory(const struct drps_index_options *o, char *text, size_t cap);
enum { DRPS_ABOVE_MEMORY_BYTES = 160 };

/* DRPS_E_CONFIG, DRPS_E_MEMORY_BUDGET: an option is out of its range, or two exclude each other.
 * Defaults that need no data are filled in. `net` is of an algorithm that has one. */
DRPS_MUST_CHECK
int drps_run_check_options(struct drps_index_options *o, const struct drps_layers *net,
                           struct drps_err *err);

/* What only nets that read sequences have, or cannot have: sets the format, and how samples go to
 * workers. DRPS_E_CONFIG. Of a plan that another one goes on from, the length is its own unless
 * something else is said. (sequences.c) */
DRPS_MUST_CHECK
int drps_run_check_sequences(struct drps_index_options *o, const struct drps_layers *net,
                             struct drps_err *err);
void drps_run_take_sequences(const struct drps_plan_info *info, struct drps_reader_options *r);

/* Read the net that the options name, before they are checked; give it its widths, and the plan its
 * text, after samples were read. DRPS_E_CONFIG. (net.c) */
DRPS_MUST_CHECK
int drps_run_take_net(struct index_run *r, struct drps_err *err);
DRPS_MUST_CHECK
int drps_run_settle_net(struct index_run *r, struct drps_err *err);

/* Set the options that are settled by the plan which the run begins with. Their strings are
 * borrowed from it. */
void drps_run_take_options(const struct drps_plan_info *info, struct drps_index_options *o);

/* Set only those of them that say what a row is, and how features are named. */
void drps_run_take_model(const struct drps_plan_info *info, struct drps_index_options *o);

/* Which ranks have samples, and which have rows. */
struct drps_plan_ranks drps_run_ranks(const struct drps_index_options *o);

int drps_run_is_grid(const struct drps_index_options *o);
int drps_run_is_micro(const struct drps_index_options *o);
/* 1: rows circulate between several workers (index/ranks/drps_circulation.h); they do in a grid,
 * unless a partition is named. */
int drps_run_circulates(const struct drps_index_options *o);
/* 1: rows are numbered by the lane that has them, so that the plan is the same for 1 worker and for
 * several. */
int drps_run_numbers_by_lane(const struct drps_index_options *o);
int drps_run_places_samples(
    const struct drps_index_options *o); /* 0: batches go to workers in turn */
/* Returns 1 if samples go to workers in another way than in turn: placed, kept with their files,
 * balanced, or by the weights of machines. */
int drps_run_assigns_samples(const struct drps_index_options *o);
/* Set share [workers], 1 in all, by the weights of machines. Returns it, or NULL: all alike. */
const double *drps_run_shares(const struct drps_index_options *o, double *share);
/* Returns 1 if samples are placed by Algorithm 1 of DPPA. */
int drps_run_samples_dppa(const struct drps_index_options *o);
/* Returns 1 if samples are placed and stay in the round that they would be dealt to. */
int drps_run_keeps_rounds(const struct drps_index_options *o);

/* ---- Implicit feedback (implicit_options.c) ---- */

/* DRPS_E_CONFIG: an option is out of its range, or not of this algorithm. */
DRPS_MUST_CHECK
int drps_run_check_implicit(struct drps_index_options *o, struct drps_err *err);
/* 1: negatives are drawn as often as items are chosen. */
int drps_run_draws_popular(const struct drps_index_options *o);

/* ---- A plan that goes on from an earlier one, r->base (base.c) ---- */

/* Take over what the base settles, which is borrowed from it. Its names are read, to check that
 * they are whole. DRPS_E_CONFIG: no plan can go on from this base, or not with these options. */
DRPS_MUST_CHECK
int drps_run_take_base(const struct drps_plan *base, struct drps_index_options *o,
                       struct drps_err *err);

/* Check the classes, labels and fields of the data against the base. DRPS_E_FORMAT: the base does
 * not have one of them. The first also accepts r->base NULL, and all classes with it. */
DRPS_MUST_CHECK
int drps_run_check_classes(const struct index_run *r, struct drps_err *err);
DRPS_MUST_CHECK
int drps_run_take_labels(struct index_run *r, struct drps_err *err);
DRPS_MUST_CHECK
int drps_run_take_fields(struct index_run *r, struct drps_err *err);

/* Check that rows have as many floats as those of the base; else DRPS_E_CORRUPT. */
DRPS_MUST_CHECK
int drps_run_check_dim(const struct index_run *r, struct drps_err *err);

/* Extend the base's tables by so many new rows, which follow all others, so that users and items
 * mix. */
void drps_run_extend_tables(struct index_run *r, uint64_t new_rows);

/* ---- Weights of classes (class_weights.c) ---- */

/* DRPS_E_CONFIG: what can be known before reading, that they cannot be read, or no label of the
 * algorithm is a class. */
DRPS_MUST_CHECK
int drps_run_check_class_weights(const struct drps_index_options *o, struct drps_err *err);

/* Settle them, once it is known what labels are. DRPS_E_CONFIG: they do not fit the labels. */
DRPS_MUST_CHECK
int drps_run_weigh_classes(struct index_run *r, struct drps_err *err);

/* What a training sample weighs, whose label is as batches hold it, by its class, too. */
DRPS_MUST_CHECK
int drps_run_weight_of(const struct index_run *r, float label, float weight, float *out,
                       struct drps_err *err);

/* ---- Phases (phase_*.c) ---- */

DRPS_MUST_CHECK
int drps_phase_parse(struct index_run *r, struct drps_err *err);
DRPS_MUST_CHECK
int drps_phase_place(struct index_run *r, struct drps_err *err);
/* Only for implicit feedback: samples get negatives. */
DRPS_MUST_CHECK
int drps_phase_draw(struct index_run *r, struct drps_err *err);
/* Only for orders that follow from where rows were placed. */
DRPS_MUST_CHECK
int drps_phase_order(struct index_run *r, struct drps_err *err);
DRPS_MUST_CHECK
int drps_phase_batch(struct index_run *r, struct drps_err *err);
DRPS_MUST_CHECK
int drps_phase_block(struct index_run *r, struct drps_err *err);
/* In place of all phases before, where the run begins with a plan. */
DRPS_MUST_CHECK
int drps_phase_take(struct index_run *r, struct drps_err *err);
/* Only for several workers. */
DRPS_MUST_CHECK
int drps_phase_split(struct index_run *r, struct drps_err *err);
/* Only for one worker. It reports no progress. */
DRPS_MUST_CHECK
int drps_phase_uses(struct index_run *r, struct drps_err *err);
/* May run beside drps_phase_uses(). */
DRPS_MUST_CHECK
int drps_phase_window(struct index_run *r, struct drps_err *err);
/* In place of drps_phase_split() where rows circulate. */
DRPS_MUST_CHECK
int drps_phase_circulate(struct index_run *r, struct drps_err *err);
/* Runs beside drps_phase_window(), of which it needs nothing. It reports no progress. */
DRPS_MUST_CHECK
int drps_phase_forecast(struct index_run *r, struct drps_err *err);
/* 1: it is not made here, as nobody needs it yet (phase_forecast.c). Known once rows have their
 * numbers. */
int drps_run_forecasts_later(const struct index_run *r);

/* After all phases: how long an epoch takes, where the machine was asked for its rates. */
DRPS_MUST_CHECK
int drps_run_price(struct index_run *r, struct drps_err *err);

/* ---- What several phases need ---- */

/* Returns what samples in spools have: provisional ids, which the map makes placed ones; NULL: they
 * have these. Borrowed (phase_place.c). */
const uint32_t *drps_run_map(const struct index_run *r);

/* Returns the position of a sample in the grid, among so many lanes. map: provisional to placed
 * ids; NULL if the sample has placed ids (phase_order.c). */
struct grid_position drps_run_position_of(const struct drps_plan_info *info, uint32_t lanes,
                                          const uint32_t *map, const struct spool_sample *s);

/* Returns the position of a sample of the shuffled order among the plan's lanes (phase_order.c). */
struct mix_position drps_run_mix_of(const struct drps_plan_info *info, const uint32_t *map,
                                    const struct spool_sample *s);

/* 1: samples are in shuffled order, which may have lanes (options.c). */
int drps_run_may_mix(const struct drps_index_options *o);

/* 1: batches of training, or of evaluation, are marked with their stratum and lane: strata of
 * evaluation are numbered on from those of training (phase_order.c). */
int drps_run_has_lanes(const struct drps_plan_info *info, int test);

/* The most rows of a block (options.c), and how blocks are made and written (phase_block.c). */
struct blocks_job drps_run_blocks_job(const struct index_run *r);

/* Returns how many processors this process may use; 1 when that cannot be told. */
unsigned drps_run_processors(void);
uint32_t drps_run_block_rows(const struct index_run *r);

/* Say what labels there is nothing, or little, to be learnt from (label_remarks.c). */
void drps_run_remark_labels(struct index_run *r, const struct drps_label_sums *train,
                            const struct drps_label_sums *test);

/* Number rows by lane (lane_numbers.c). */
DRPS_MUST_CHECK
int drps_run_number_by_lane(struct index_run *r, struct drps_err *err);

/* Say which ranks there are. Then, once all parts are made, what they call the plan
 * (index/ranks/drps_whole.h), first [ranks + 1] being who has which rows; and remove what the parts
 * have by then (phase_split.c). */
void drps_run_begin_whole(struct index_run *r);
DRPS_MUST_CHECK
int drps_run_name_whole(struct index_run *r, const uint32_t *first, struct drps_err *err);
DRPS_MUST_CHECK
int drps_run_remove_batches(struct index_run *r, struct drps_err *err);

/* One worker's part is the plan itself (phase_block.c). */
void drps_run_keep_whole(struct index_run *r);

#endif
