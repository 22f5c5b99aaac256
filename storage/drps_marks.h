/*
 * Which rows have changed: a mark for each range of config.mark_rows rows, set by the steps that
 * change rows of it. Used by the stores that know rows by their placed ids; private to storage/.
 * One thread, that of the steps.
 */
#ifndef DRPS_STORAGE_MARKS_H
#define DRPS_STORAGE_MARKS_H

#include "storage/drps_store.h"

struct drps_marks {
    uint64_t rows, range_rows; /* of the store, of a range; range_rows 0: no marks are kept */
    size_t words;              /* of a bit a range */
    uint64_t *changed;         /* own: [words] */
    uint64_t first, end;       /* all rows outside first .. end - 1 are marked already */
    unsigned span;             /* steps that may be open */
    uint64_t *open;            /* own: [span][words] the ranges of open step s at s % span */
};

/* As config->mark_rows and open_steps say. 0 or -ENOMEM; `m` may be destroyed in either case. */
DRPS_MUST_CHECK
int drps_marks_init(struct drps_marks *m, const struct drps_store_config *config,
                    struct drps_err *err);
void drps_marks_destroy(struct drps_marks *m); /* zeroed too */

/* A step opens, with ids [n] increasing, below `rows`; it closes, and may have changed them. */
void drps_marks_open(struct drps_marks *m, uint64_t step, const uint32_t *ids, size_t n);
void drps_marks_close(struct drps_marks *m, uint64_t step, int changed);

/* The first run of rows at or after `from`, whole ranges, that have changed since the last
 * drps_marks_clear(). Returns 0 where there is none. */
int drps_marks_next(const struct drps_marks *m, uint64_t from, uint64_t *first_out,
                    uint64_t *end_out);
void drps_marks_clear(struct drps_marks *m);

#endif
