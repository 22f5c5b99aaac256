/*
 * Generations of the dictionary as runs on disk, sorted by key, and all of them merged. Private to
 * index/dictionary/.
 */
#ifndef DRPS_INDEX_DICTIONARY_DICT_RUNS_H
#define DRPS_INDEX_DICTIONARY_DICT_RUNS_H

#include "index/dictionary/dict_internal.h"

struct dict_merge {
    struct dict *d;
    struct dict_run *runs; /* own */
    size_t n;
};

/* A key with all its provisional ids. */
struct dict_merged {
    struct dict_key k; /* with its name until drps_dict_merge_skip() */
    uint32_t *ids;     /* [generations] borrowed: one for each that has the key */
    size_t ids_n;
};

/* Close also after a failure. */
DRPS_MUST_CHECK
int drps_dict_merge_open(struct dict *d, struct dict_merge *m, struct drps_err *err);
void drps_dict_merge_close(struct dict_merge *m);

/* The next key of all runs: 1, or 0 at the end. out->ids has room for one id a run. */
DRPS_MUST_CHECK
int drps_dict_merge_next(struct dict_merge *m, struct dict_merged *out, struct drps_err *err);
/* Step past the key that drps_dict_merge_next() gave. */
DRPS_MUST_CHECK
int drps_dict_merge_skip(struct dict_merge *m, const struct dict_merged *at, struct drps_err *err);

#endif
