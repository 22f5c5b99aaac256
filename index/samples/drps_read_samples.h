/* First phase of drps-index: text to provisional ids, in a spool. Shared inside index/. */
#ifndef DRPS_INDEX_SAMPLES_READ_SAMPLES_H
#define DRPS_INDEX_SAMPLES_READ_SAMPLES_H

#include "base/exact/drps_exact.h"
#include "index/dictionary/drps_dict.h"
#include "index/drps_index.h"
#include "index/drps_progress.h"
#include "index/samples/drps_spool.h"

/* Distinct label values, as far as they matter: more than two means regression. */
struct label_set {
    size_t n; /* 0 .. 3; 3: more than two */
    float values[3];
    struct drps_exact weights[3]; /* of the samples with each of the first two */
};

struct read_samples {
    struct dict *dict;
    struct spool *train, *test;
    uint64_t samples, test_samples, nnz, test_nnz;
    struct label_set labels, test_labels;
    size_t third_input;              /* that the third of the labels is met in first, and */
    uint64_t third_line;             /* its line; 0: there is none, or several machines read */
    struct drps_classes *classes;    /* own: labels are their numbers; NULL: they are as read */
    struct drps_exact *in_training;  /* own: [DRPS_CLASSES_MOST] of classes: what their training
                                        samples weigh together; 0: there are none */
    enum drps_reader_labels read_as; /* of classes */
    char format[DRPS_PLAN_NAME_BYTES];
    int string_names;
    char **fields; /* own: [fields_n] */
    size_t fields_n;
    uint32_t field_count; /* fields of training entries are below it; 0: entries have none */
    int numbers;          /* samples have numbers by place, as many as fields, and one feature */
    uint64_t sequences;   /* of training; 0: samples are of none */
    uint32_t longest;     /* samples of the longest sequence, of tests, too */
    char label_column[DRPS_PLAN_COLUMN_BYTES]; /* csv: "" if its name is longer, or not UTF-8 */
    int headless;                              /* csv has no header */
    uint64_t bytes, lines, skipped, weightless;
    /* Samples of an earlier plan, whose ids are placed: they are the first generation in the spool,
     * and those of the dictionary follow. 0: there are none. */
    uint64_t replayed;
    uint64_t below; /* implicit feedback: samples whose rating is too small, which are left out */
};

/* 1: samples stay with the workers that their files are for; so do those of test files, or of a
 * share of the samples, where each worker has as many files of them. */
int drps_samples_stay(const struct drps_index_options *o);
int drps_tests_stay(const struct drps_index_options *o);

void drps_label_set_add(struct label_set *set, float label, double weight);

/* Add the labels that another has read. */
void drps_label_set_merge(struct label_set *set, const struct label_set *from);

/* Read all inputs that progress->options names. Scratch files go to `dir`. On failure the caller
 * still calls drps_read_samples_free(). */
DRPS_MUST_CHECK
int drps_read_samples(const struct drps_io *io, const struct index_progress *progress,
                      const char *dir, struct read_samples *out, struct drps_err *err);

void drps_read_samples_free(struct read_samples *p);

#endif
