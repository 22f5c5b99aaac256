/*
 * Is a plan whole, and do its files say the same? Every file is read: its size, its records and
 * their checksums, the numbers in them, and what each file says of the others:
 *
 *   data.rec      bodies have the rows that rows.rec lists, and use each of them; sums and maxima
 *                 are those of plan.json
 *   rows.rec      increasing, rows of the plan
 *   names.rec     each name has a row of its own in the table of its kind, each row a name; the key
 *                 of a string is its hash
 *   blocks.rec    covers all rows
 *   uses.rec      the blocks of the step's rows, and how far away each is used next
 *   windows.rec   steps without a gap, the rows of these steps, how far away each is used next and
 *                 was used last
 *   slots.rec     each slot leads to the row that rows.rec has there
 *   strata        lanes share no row
 *   ranks         ranges of rows follow on each other; shares of workers and positions in unions
 *                 agree, each rank's with those of all others; sums are those of the whole
 *
 * Costs: data.rec, names.rec, blocks.rec, slots.rec and those of ranks are read three times,
 * uses.rec four, rows.rec and windows.rec five times, with lanes data.rec and rows.rec once more.
 * Each further 8 Mi rows of a plan take two passes over windows.rec, and with lanes one over
 * data.rec and rows.rec; each further 8 Mi blocks one over uses.rec. Memory: a few MiB; a table of
 * 64 MiB for these rows or blocks; a bit a row; 4 bytes a block; 13 bytes a row of the largest
 * window; the largest batch; 24 bytes a step for each of at most four open files; and 16 bytes a
 * pair of ranks.
 */
#ifndef DRPS_INDEX_VERIFY_VERIFY_H
#define DRPS_INDEX_VERIFY_VERIFY_H

#include "base/folder/drps_findings.h"
#include "index/plan/drps_plan.h"

/*
 * Check a plan, of the whole one for several workers also the parts of all ranks. Returns 0 when it
 * came to the end: problems are in *found, a name of a file in each. A file that does not pass by
 * itself is not compared with others. DRPS_E_INTERRUPTED, -ENOMEM. found NULL: the first problem is
 * the failure.
 */
DRPS_MUST_CHECK
int drps_plan_verify(const struct drps_plan *plan, struct drps_findings *found,
                     struct drps_err *err);

/* What the names of a dictionary are compared with; all borrowed. */
struct drps_names_expected {
    const char *path; /* of the folder, for messages */
    uint64_t rows;    /* of all tables */
    const struct drps_table *tables;
    size_t tables_n, fields_n;
    int string_names;
    uint64_t hash_seed;
};

struct drps_names;

/* Check the dictionary of a plan or a model, whose file passes its checksums: each name has a row
 * of its own, in the table of its kind, and each row but the intercept a name; keys increase, and
 * those of strings are their hashes. Memory: a bit a row. Returns as drps_plan_verify() does. */
DRPS_MUST_CHECK
int drps_names_verify(struct drps_names *names, const struct drps_names_expected *expected,
                      struct drps_findings *found, struct drps_err *err);

#endif
