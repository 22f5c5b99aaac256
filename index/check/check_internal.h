/* The parts of a check: counts of features (features.c) and of equal samples (copies.c). Private to
 * index/check/. */
#ifndef DRPS_INDEX_CHECK_INTERNAL_H
#define DRPS_INDEX_CHECK_INTERNAL_H

#include <stddef.h>
#include <stdint.h>

#include "index/check/drps_check.h"
#include "index/plan/drps_batch.h"
#include "index/labels/drps_constant.h"

/* ---- Features: those of rows [first, end), training samples ---- */

struct feature; /* what is counted of one */

struct features {
    const struct drps_plan_info *info;
    struct feature *of_row; /* own: [end - first] */
    uint64_t first, end;
    /* All slices: */
    uint64_t constants, first_constant; /* how many there are, and the row of the first */
    uint64_t deciding, best, wrong;     /* the same, and of the best one its row and its errors */
    unsigned char *decided;             /* own: [classes] that a feature decides; two have one */
};

/* Bytes that a row takes. */
size_t features_row_bytes(void);

DRPS_MUST_CHECK
int features_init(struct features *f, const struct drps_plan_info *info, struct drps_err *err);
void features_free(struct features *f);
DRPS_MUST_CHECK
int features_begin(struct features *f, uint64_t first, uint64_t end, struct drps_err *err);
void features_add(struct features *f, const struct drps_batch *b, const uint32_t *rows);
/* Judge the slice; labels are those of all training samples. */
void features_end(struct features *f, const struct drps_label_sums *labels);
/* Returns how many features decide the label, when all slices are done. */
uint64_t features_deciding(const struct features *f);

/* ---- Copies: samples whose hashes fall into a slice of them ---- */

struct copies {
    struct copy *table; /* own: [mask + 1], open addressing */
    size_t mask, n;
    uint32_t slice, slices;
    uint64_t early; /* training samples that are compared with as many test samples */
    uint64_t seen;  /* training samples so far */
    uint64_t copies, copies_of_few, copies_in_test; /* all slices */
};

/* Returns the bytes for so many test samples. */
uint64_t copies_bytes(uint64_t test_samples);

DRPS_MUST_CHECK
int copies_begin(struct copies *c, uint32_t slice, uint32_t slices, uint64_t test_samples,
                 struct drps_err *err);
/* Add test samples, then look for training samples. -ENOMEM. */
DRPS_MUST_CHECK
int copies_add(struct copies *c, const struct drps_batch *b, const uint32_t *rows,
               struct drps_err *err);
void copies_look(struct copies *c, const struct drps_batch *b, const uint32_t *rows);
void copies_end(struct copies *c);
void copies_free(struct copies *c);

#endif
