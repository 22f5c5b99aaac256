/* Small data sets for whole runs of drps_index_run(), and plans read back into samples. */
#ifndef DRPS_TESTS_INDEX_CASE_H
#define DRPS_TESTS_INDEX_CASE_H

#include <stddef.h>
#include <stdint.h>

#include "index/drps_index.h"
#include "support/scratch.h"

enum case_format { CASE_LIBSVM, CASE_RATINGS, CASE_CSV };

/*
 * A file of `n` random samples, its features drawn from `features` names. Labels are 0 and 1, or
 * ratings 1 to 5. Returns its path, valid as scratch_path()'s.
 */
const char *case_input(struct scratch *s, const char *name, enum case_format format, size_t n,
                       size_t features, uint64_t seed);

/* Options that name one input and "plan" in the scratch folder; the strings live as long as `s`. */
struct case_run {
    const char *inputs[1];
    const char *tests[1];
    char input[SCRATCH_PATH_BYTES], test[SCRATCH_PATH_BYTES], out[SCRATCH_PATH_BYTES];
    struct drps_index_options options;
    struct drps_index_result result;
};
void case_begin(struct case_run *c, struct scratch *s, const char *input_path, const char *algo);

/* drps_index_run(); the test fails when it fails. */
void case_compile(struct case_run *c);

/* case_compile(), and the plan that it made; the caller closes it. */
struct drps_plan *case_plan(struct case_run *c);

/* Samples as text lines "label key:value ...", or "label*weight ..." where it is not 1, sorted;
 * keys are feature keys. */
struct case_lines {
    char **line; /* own */
    size_t n, cap;
};
void case_lines_free(struct case_lines *l);
int case_lines_equal(const struct case_lines *a, const struct case_lines *b);

/* All samples of a plan's training (0) or evaluation (1) batches; checks the batches on the way.
 * `sort`: by text. */
void case_plan_lines(const char *plan_dir, int evaluation, int sort, struct case_lines *out);

/* All samples of an input, with labels as the plan stores them: negative becomes -1 and positive 1
 * if they differ. */
void case_input_lines(const char *path, float negative, float positive, int sort,
                      struct case_lines *out);

/* Whether all record files of two plans hold the same bytes. */
int case_same_records(const char *plan_a, const char *plan_b);

/* Open the plan and read every byte of it. Fails the test when anything is wrong. */
void case_verify(const char *plan_dir);

#endif
