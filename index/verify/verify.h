/*
 * The checks that drps_plan_verify() is made of, one a file. Each compares files of one folder and
 * keeps what it finds in v->found; a negative result ends all. Private to index/verify/.
 */
#ifndef DRPS_INDEX_VERIFY_VERIFY_PRIVATE_H
#define DRPS_INDEX_VERIFY_VERIFY_PRIVATE_H

#include "index/plan/drps_steps.h"
#include "index/plan/drps_window.h"
#include "index/verify/drps_verify.h"

enum { VERIFY_BUFFER_BYTES = 1 << 20, VERIFY_SLICE_ROWS = 1 << 23 };

/* Sums and maxima of batches: those of one folder, or of all ranks. */
struct verify_sums {
    uint64_t samples, eval_samples, entries, eval_entries;
    uint64_t max_samples, max_rows, max_entries, max_body_bytes;
    double weight, eval_weight; /* of all samples: as many as there are where they have none */
    double most_weight;         /* of a training sample */
};

/* How often workers and servers exchange rows: number r W + s of each is a hash over all rounds of
 * how many rows worker r has at server s, once as r's plan says and once as s's. */
struct verify_pairs {
    uint64_t *shares, *positions; /* [workers][workers] */
    uint64_t *handed, *arrived;   /* the same, from worker to worker: [sender][receiver] */
};

/* The check of one folder. */
struct verify {
    const struct drps_plan *plan;
    const struct drps_plan_info *info;
    const struct drps_io *io;
    uint64_t steps;
    struct drps_findings *found;
    unsigned damaged;           /* files that do not pass by themselves, a bit each */
    struct verify_sums sums;    /* of data.rec */
    struct verify_pairs *pairs; /* NULL: nobody compares ranks */
    uint64_t base, share;       /* progress: bytes of the checks before, and of this one */
};

/* One number as it was counted and as plan.json has it. */
struct verify_number {
    const char *key;
    uint64_t counted, says;
    int later; /* 0 in a plan of before it was known */
};
void drps_verify_numbers(struct verify *v, const struct verify_number *numbers, size_t n);

/* Open one of the folder's files with a record a step, or `count` records. */
DRPS_MUST_CHECK
int drps_verify_open(struct verify *v, const char *name, struct steps **st_out,
                     struct drps_err *err);

/* The check that runs has done `done` parts of `total`. */
void drps_verify_reach(struct verify *v, uint64_t done, uint64_t total);

/* The bytes of file i of drps_plan_files as plan.json lists it, of a damaged one not more than a
 * disk has: for progress alone. 0: it is not listed. */
uint64_t drps_verify_bytes(const struct drps_plan *plan, size_t i);

/* How many slices of rows or blocks a table is made for, one after the other. */
uint64_t drps_verify_slices(uint64_t n);

/* Every file by itself: there, of its size, every record and the whole of its checksum; sets
 * v->damaged. */
DRPS_MUST_CHECK
int drps_verify_files(struct verify *v, struct drps_err *err);

/* What the bodies of batches are decoded into. Zero it first. */
struct verify_bodies {
    struct steps *file;
    void *plain;         /* [max_body_bytes] own */
    unsigned char *used; /* [used_cap] own: rows of the batch that have an entry */
    size_t used_cap;
};
DRPS_MUST_CHECK
int drps_verify_bodies_open(struct verify *v, struct verify_bodies *b, struct drps_err *err);
void drps_verify_bodies_close(struct verify_bodies *b);
/* Check the body of a step by itself and add it to v->sums; *rows_out are the rows that it has. A
 * failure names the record. */
DRPS_MUST_CHECK
int drps_verify_body(struct verify *v, struct verify_bodies *b, uint64_t step, size_t *rows_out,
                     struct drps_err *err);
/* Compare sums with plan.json: of one worker, or of the whole. */
void drps_verify_sums(struct verify *v, const struct verify_sums *sums);

/* Bodies against row lists. */
DRPS_MUST_CHECK
int drps_verify_batches(struct verify *v, struct drps_err *err);

/* blocks.rec and uses.rec against row lists. */
DRPS_MUST_CHECK
int drps_verify_blocks(struct verify *v, struct drps_err *err);

/* slots.rec against row lists and windows.rec, whose steps and sums are checked, too. */
DRPS_MUST_CHECK
int drps_verify_slots(struct verify *v, struct drps_err *err);

/* The use distances of windows.rec against each other. */
DRPS_MUST_CHECK
int drps_verify_distances(struct verify *v, struct drps_err *err);

/* What plan.json says of windows where there are none. */
DRPS_MUST_CHECK
int drps_verify_no_windows(struct verify *v, struct drps_err *err);

/* Decode window k; what it fails by itself names the record. */
DRPS_MUST_CHECK
int drps_verify_window(struct steps *windows, uint64_t k, struct drps_window *window,
                       struct drps_err *err);

/* Strata and lanes of data.rec against row lists. */
DRPS_MUST_CHECK
int drps_verify_lanes(struct verify *v, struct drps_err *err);

/* names.rec against the tables. */
DRPS_MUST_CHECK
int drps_verify_names(struct verify *v, struct drps_err *err);

/* Bodies, shares.rec and positions.rec of a rank against each other and its row lists; fills
 * v->pairs. */
DRPS_MUST_CHECK
int drps_verify_rounds(struct verify *v, struct drps_err *err);

/* residuals.rec of a rank against data.rec and shares.rec. */
DRPS_MUST_CHECK
int drps_verify_residuals(struct verify *v, struct drps_err *err);

/* published.rec of a rank against its row lists and positions.rec. */
DRPS_MUST_CHECK
int drps_verify_published(struct verify *v, struct drps_err *err);

/* numbers.rec of a rank against data.rec, shares.rec, its row lists and positions.rec. */
DRPS_MUST_CHECK
int drps_verify_row_numbers(struct verify *v, struct drps_err *err);

/* handed.rec of a rank against data.rec and shares.rec, and lent.rec against positions.rec; both go
 * on with v->pairs. */
DRPS_MUST_CHECK
int drps_verify_handed(struct verify *v, struct drps_err *err);
DRPS_MUST_CHECK
int drps_verify_lent(struct verify *v, struct drps_err *err);

/* Go on with a chain of numbers. */
void drps_verify_chain(uint64_t *hash, uint64_t number);

/* Where rows circulate: the n-th range that departs from a rank is the n-th that arrives at the one
 * before it, after all of them were checked. */
DRPS_MUST_CHECK
int drps_verify_circulation(const struct drps_plan *whole, struct drps_findings *found,
                            struct drps_err *err);

/* What the ranks of a whole plan say of each other, after all of them were checked. */
DRPS_MUST_CHECK
int drps_verify_pairs(const struct drps_plan *whole, const struct verify_pairs *pairs,
                      struct drps_findings *found, struct drps_err *err);

#endif
