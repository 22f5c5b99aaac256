/* The parts of reading samples that take what was read as a whole. Private to index/samples/read/.
 */
#ifndef DRPS_INDEX_SAMPLES_READ_READ_H
#define DRPS_INDEX_SAMPLES_READ_READ_H

#include "index/samples/drps_read_samples.h"
#include "index/samples/read/take.h"

/* ---- labels.c ---- */

/* Have labels be classes where the algorithm takes names: none are known yet, or those of the plan
 * that this one goes on from. */
DRPS_MUST_CHECK
int drps_read_open_classes(const struct drps_index_options *o, struct read_samples *p,
                           struct drps_err *err);
/* Labels are numbers. */
void drps_read_drop_classes(struct read_samples *p);

/* ---- owners.c ---- */

/* Returns the worker that keeps the samples of an input; 0 where they do not stay with it. */
uint32_t drps_read_owner_of(const struct drps_index_options *o, int test, size_t input);

/* ---- columns.c ---- */

/* Have the format and columns be those of the first input, or of the plan that this one goes on
 * from. DRPS_E_FORMAT: plan.json cannot hold a name. */
DRPS_MUST_CHECK
int drps_read_learn_columns(struct read_samples *p, const struct drps_reader *reader,
                            struct drps_err *err);
DRPS_MUST_CHECK
int drps_read_take_columns(struct read_samples *p, const struct drps_plan *base,
                           struct drps_err *err);

/* An input of another format, or with other columns, would share no feature with what was read
 * before: refuse it. `test`: it holds evaluation samples. */
DRPS_MUST_CHECK
int drps_read_check_columns(const struct read_samples *p, const struct drps_index_options *o,
                            int test, const struct drps_reader *reader, struct drps_err *err);

/* ---- dict.c ---- */

/* 1: samples get their place by groups of users and items. */
int drps_read_in_grid(const struct drps_index_options *o);

/* Open the dictionary, p->dict, once the format is known. DRPS_E_CONFIG: the algorithm does not
 * take its samples. */
DRPS_MUST_CHECK
int drps_read_open_dict(const struct drps_io *io, const struct drps_index_options *o,
                        const char *dir, struct read_samples *p, struct drps_err *err);

/* ---- list.c ---- */

/* Read the inputs at paths [n]: those for evaluation where t->places.test_input is set. The first
 * of all settles the format and opens the dictionary, in `dir`. */
DRPS_MUST_CHECK
int drps_read_list(const struct drps_io *io, struct taker *t, const char *const *paths, size_t n,
                   const char *dir, struct drps_err *err);

#endif
