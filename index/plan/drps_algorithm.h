/*
 * The algorithms, described: which losses, labels, rows and data go with each. Making a plan and
 * training read this one table. A new algorithm is a new entry of it and, where its scores are a
 * new function of the rows, a predictor with its kernels in engine/model/model.c.
 *
 * A score is what a predictor makes of a sample's rows; a loss turns score and label into a number:
 *   lir = linear + squared          svm = linear + hinge or squared hinge
 *   lor = linear + logistic         lmf = mf + squared          fm = fm + logistic or squared
 *   ffm = ffm + logistic or squared: its entries have a field
 *   bpr, warp, wmf = mf + a loss of the same name: a sample is a user, an item that the user has
 * chosen, and items drawn against it
 * A matrix predictor makes a score of each class:
 *   mlr = matrix + softmax          svm of several classes = matrix + hinges, one versus the rest
 * A topic model has no labels: each document is coded on a dictionary of topics (engine/topic/).
 * expr is linear, or a matrix, with a loss that is a text (index/expr/drps_expr.h).
 * net is layers that a text names (index/layers/drps_layers.h) + logistic, squared, or softmax.
 */
#ifndef DRPS_INDEX_PLAN_ALGORITHM_H
#define DRPS_INDEX_PLAN_ALGORITHM_H

#include <stddef.h>
#include <stdint.h>

#include "index/expr/drps_expr.h"

enum drps_algo {
    DRPS_ALGO_LIR,
    DRPS_ALGO_LOR,
    DRPS_ALGO_SVM,
    DRPS_ALGO_LMF,
    DRPS_ALGO_FM,
    DRPS_ALGO_MLR,
    DRPS_ALGO_TOPIC,
    DRPS_ALGO_EXPR,
    DRPS_ALGO_FFM,
    DRPS_ALGO_BPR,
    DRPS_ALGO_WARP,
    DRPS_ALGO_WMF,
    DRPS_ALGO_NET
};
enum drps_loss {
    DRPS_LOSS_SQUARED,
    DRPS_LOSS_LOGISTIC,
    DRPS_LOSS_HINGE,
    DRPS_LOSS_SQUARED_HINGE,
    DRPS_LOSS_SOFTMAX,
    DRPS_LOSS_CODING,
    DRPS_LOSS_EXPRESSION, /* a text that is none of the others */
    /* These three compare an item that a user has chosen with items drawn against it
     * (engine/model/ranking/). */
    DRPS_LOSS_BPR,
    DRPS_LOSS_WARP,
    DRPS_LOSS_WMF
};
enum { DRPS_ALGOS = DRPS_ALGO_NET + 1, DRPS_LOSSES = DRPS_LOSS_WMF + 1 };

enum drps_scoring {
    DRPS_PREDICTOR_LINEAR,
    DRPS_PREDICTOR_MF,
    DRPS_PREDICTOR_FM,
    DRPS_PREDICTOR_MATRIX,
    DRPS_PREDICTOR_TOPIC,
    DRPS_PREDICTOR_FFM,
    DRPS_PREDICTOR_NET
};

/* What labels an algorithm takes: numbers, two classes; with either, the task or the data decides;
 * names of as many classes as there are; or two classes that are numbers, else names. */
enum drps_labels {
    DRPS_LABELS_REAL,
    DRPS_LABELS_CLASSES,
    DRPS_LABELS_EITHER,
    DRPS_LABELS_NAMES,
    DRPS_LABELS_CLASSES_OR_NAMES
};

/* Factors of a row where nothing is said, and at most. */
enum { DRPS_FACTORS_DEFAULT = 16, DRPS_FACTORS_MAX = 4096 };
/* See `init`. */
#define DRPS_INIT 0.1f
/* The largest `dim`, and the largest number of a field: they fit 16 bits. */
enum { DRPS_DIM_MAX = 65535, DRPS_FIELD_MAX = 65534 };
/* Topics, which are factors of algorithm topic. */
enum { DRPS_TOPICS_LEAST = 2, DRPS_TOPICS_MOST = 1024 };

/* Rows have a table for each kind of feature: one or two. */
enum { DRPS_ALGORITHM_TABLES = 2 };

struct drps_algorithm {
    enum drps_algo algo;
    const char *name;
    enum drps_scoring predictor;
    enum drps_labels labels;
    unsigned losses; /* bit i is set if the algorithm can have loss i */
    /* The loss that is meant where none is named, by what the labels are. */
    enum drps_loss loss_of_reals, loss_of_classes;
    enum drps_loss loss_of_names; /* of several classes; 0, which is of reals: loss_of_classes */
    int has_factors; /* 1: a row is a weight (or bias) and the factors; 0: a weight alone */
    int has_fields;  /* 1: each entry has a field, and a row has `factors` floats for each field */
    uint32_t default_factors; /* of a row where nothing is said; 0: DRPS_FACTORS_DEFAULT */
    /* Names of the tables behind the intercept: of users and items where samples are ratings, of
     * samples and features where each training sample has a row of its own. */
    const char *tables[DRPS_ALGORITHM_TABLES];
    int sample_rows;       /* 1: the first table is of samples: drps_algorithm_has_sample_rows() */
    int draws;             /* 1: drps_algorithm_draws() */
    const char *optimizer; /* the one that is meant where none is named */
    float init;            /* factors start between -init / sqrt(factors) and that; 0: DRPS_INIT */
    float adagrad_lr;      /* learning rate with AdaGrad where none is given */
    float adagrad_eps;     /* its eps where none is given; 0: the optimizer's own */
    float ones_lr, ones_eps; /* the same where most entries are 1; 0: no other */
};

/* Returns the entry of an algorithm, static; NULL if there is none of this name (or `name` is
 * NULL). */
const struct drps_algorithm *drps_algorithm_find(const char *name);
const struct drps_algorithm *drps_algorithm(enum drps_algo algo);

/* 1: its loss is a text. Labels, predictor and rows are those of drps_algorithm_of() then. */
int drps_algorithm_has_text(const struct drps_algorithm *a);

/* Returns the entry of an algorithm with this loss, static; `e` is not used by algorithms whose
 * loss is no text, and may be NULL. */
const struct drps_algorithm *drps_algorithm_of(const struct drps_algorithm *a,
                                               const struct drps_expr *e);

/* The entry of a net; with `classes` its scores are as many as there are classes; with `sequences`
 * it reads these, and has classes. */
const struct drps_algorithm *drps_algorithm_of_net(int classes, int sequences);
/* 1: it is a net's. */
int drps_algorithm_is_net(const struct drps_algorithm *a);

/* The built-in loss that a text is, word for word, with labels of so many classes (0: real numbers;
 * 1: -1 and +1); DRPS_LOSS_EXPRESSION: none. */
enum drps_loss drps_algorithm_text_loss(const struct drps_expr *e, int classes);

/* 1: samples are a user, an item and a rating; 0: any number of features and a label. */
int drps_algorithm_rates(const struct drps_algorithm *a);

/*
 * 1: implicit feedback. Data says which items a user has chosen, and drps-index draws items that
 * the user has not: negatives. A sample's entries have fields then, which say what they are:
 * DRPS_ROLE_USER, DRPS_ROLE_POSITIVE, and from DRPS_ROLE_NEGATIVE on the negatives in the order of
 * their draw.
 */
int drps_algorithm_draws(const struct drps_algorithm *a);
enum { DRPS_ROLE_USER, DRPS_ROLE_POSITIVE, DRPS_ROLE_NEGATIVE };
/* The most items that are drawn for a sample. */
enum { DRPS_NEGATIVES_MOST = 4096 };

/* 1: a topic model. */
int drps_algorithm_is_topic(const struct drps_algorithm *a);

/*
 * 1: each training sample has a row of its own, which stays from epoch to epoch, as documents of a
 * topic model have their codes ("Orpheus", section 4: data-dependent variables). It is an entry of
 * the sample with the value 0, which no feature has (drps_batch_sample_row()); its key is
 * drps_algorithm_sample_key(number of the sample in the input, from 1). These rows are the first
 * table. Held-out samples have none.
 */
int drps_algorithm_has_sample_rows(const struct drps_algorithm *a);

/* Keys from here on are of samples; features of algorithms with such have smaller ones. */
#define DRPS_SAMPLE_KEYS (UINT64_C(1) << 63)
static inline uint64_t drps_algorithm_sample_key(uint64_t number)
{
    return DRPS_SAMPLE_KEYS | number;
}

/* 1: labels may be names of classes. */
int drps_algorithm_takes_names(const struct drps_algorithm *a);

/* 1: each entry has a field. */
int drps_algorithm_has_fields(const struct drps_algorithm *a);

/* DRPS_E_CONFIG: features of the algorithm cannot be hashed so, or with so many fields (0: not
 * known) have bins of more than 32 bits. */
struct drps_hashing;
DRPS_MUST_CHECK
int drps_algorithm_check_hashing(const struct drps_algorithm *a, const struct drps_hashing *h,
                                 uint32_t fields, struct drps_err *err);

/* Returns the factors of a row where nothing is said; 0 for algorithms without. */
uint32_t drps_algorithm_default_factors(const struct drps_algorithm *a);

/* Returns how many floats a row's parameters are; `factors` is 0 for algorithms without, and
 * `classes` is how many classes have names, 1 or less where none have. */
uint32_t drps_algorithm_dim(const struct drps_algorithm *a, uint32_t factors, size_t classes);
/* The same of algorithms with fields, of which there are so many; 0: above DRPS_DIM_MAX. */
uint32_t drps_algorithm_field_dim(uint32_t factors, uint32_t fields);

/* The loss that is meant where none is named: of labels that are real numbers (classes 0), -1 and
 * +1 (1), or names of so many classes. */
enum drps_loss drps_algorithm_loss(const struct drps_algorithm *a, int classes);
int drps_algorithm_has_loss(const struct drps_algorithm *a, enum drps_loss loss);

const char *drps_algo_name(enum drps_algo algo); /* "unknown" outside of the enumeration */
const char *drps_loss_name(enum drps_loss loss);
/* 1: found; 0: there is none of this name. */
int drps_loss_find(const char *name, enum drps_loss *loss_out);
/* 1: the loss takes labels of -1 and +1, or numbers of classes; 0: real numbers, or, where it is a
 * text, any. */
int drps_loss_is_classification(enum drps_loss loss);

/* Names for messages: "lir, lor, svm, lmf, fm, mlr, ...", "squared, logistic, hinge, ...". */
enum { DRPS_ALGORITHM_NAMES_BYTES = 96 };
const char *drps_algo_names(char out[DRPS_ALGORITHM_NAMES_BYTES]);
const char *drps_loss_names(char out[DRPS_ALGORITHM_NAMES_BYTES]);

#endif
