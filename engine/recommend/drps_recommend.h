/*
 * Recommendation: the items with the largest scores for users of a finished model of ratings.
 *
 * The score of an item for a user is, but for rounding, what prediction says of the pair: intercept
 * + bias of the user + bias of the item + <user's factors, item's factors>. It is computed in
 * double from the model's floats: eight sums of every eighth product, then added pairwise. Of equal
 * scores the item comes first whose row does, which is the one with more ratings in a plan of one
 * worker. So the result is exact: it depends neither on memory nor on threads, nor on which library
 * multiplies.
 *
 * All scores are first computed as products of blocks of users and blocks of items in floats. Only
 * those that may be among the best, by a bound on the error of such a product, are computed in
 * double. Items are kept in memory, or read again for each large block of users.
 *
 * Similar items: the score is the cosine of the two items' factors, 0 for an item without any.
 *
 * Folding in: a user of whom there are ratings, and whom the model need not have, gets bias b and
 * factors p that minimise
 *
 *     sum over the user's ratings r of item i: (r - intercept - b_i - b - <p, q_i>)^2
 *         + n l2 (b^2 + |p|^2)
 *
 * with the model's items as they are; n counts the ratings whose item the model has (Zhou et al.,
 * AAIM 2008: weighted-lambda regularisation). This is the loss of training with its l2.
 */
#ifndef DRPS_ENGINE_RECOMMEND_RECOMMEND_H
#define DRPS_ENGINE_RECOMMEND_RECOMMEND_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/drps_io.h"
#include "base/drps_log.h"
#include "engine/recommend/evaluate/drps_evaluation.h"
#include "index/reader/drps_reader.h"

enum { DRPS_RECOMMEND_DEFAULT = 10, DRPS_RECOMMEND_MOST = 1 << 20 };

/* What multiplies blocks; the results are the same. */
enum drps_products { DRPS_PRODUCTS_FASTEST, DRPS_PRODUCTS_OPENBLAS, DRPS_PRODUCTS_OWN };

enum drps_recommend_phase {
    DRPS_RECOMMEND_NAMES, /* the dictionary is read; done and total are 0 */
    DRPS_RECOMMEND_SEEN,  /* ratings are read: done counts them */
    DRPS_RECOMMEND_SCORES /* done and total are users, or similar items, times items */
};

struct drps_recommend_progress {
    enum drps_recommend_phase phase;
    uint64_t done, total; /* total 0: not known */
};

/* Files of names have one a line; blanks at both ends of a line and empty lines do not count. "-"
 * is stdin, for one of all files. */
struct drps_recommend_options {
    const char *model;  /* folder that drps-train made. Required */
    const char *output; /* file to write, "-" for stdout. Required. It appears when it is complete;
                           neither an input nor in the model's folder */
    int replace;        /* an existing output is replaced at the end */
    int json;           /* lines are JSON objects, else fields with tabs between them */
    size_t n;           /* items for each; at most DRPS_RECOMMEND_MOST; default 10 */

    /* For whom: these names [names_n] and those of a file, each once, in the order of the model's
     * rows; without both all users, or items. */
    int similar; /* 1: names are items, and similar items are wanted; 0: users */
    const char *const *names;
    size_t names_n;
    const char *names_file; /* may be NULL */
    /* For users of ratings [fold_in_n files], in the order of their first ones. What they have
     * rated is seen. With neither names nor similar. */
    const char *const *fold_in;
    size_t fold_in_n;
    double fold_l2; /* negative: that of training, or 0.02 where that was 0 */

    const char *const *seen; /* ratings [seen_n files]: a user gets none of these items */
    size_t seen_n;
    /* Evaluation, for users alone: ratings [test_n files] that training has not seen. Users without
     * any are left out. */
    const char *const *test;
    size_t test_n;
    const double *test_from; /* ratings below this are not wanted; NULL: all are */
    int no_lines;            /* 1: evaluation alone, nothing is written to the output */
    const char *candidates;  /* file of the items that are allowed; NULL: all */
    const char *exclude;     /* file of items that are not; may be NULL */
    int skip_unknown;        /* names that the model does not have: 0: are an error; 1: are counted.
                                In ratings they are counted always */

    struct drps_reader_options
        reader;       /* of ratings; format NULL: as in training; memory, log are set here */
    unsigned threads; /* that compute; default 1 */
    enum drps_products products;
    uint64_t memory_bytes;  /* of the whole process; default: half of what this process may use */
    const char *scratch;    /* folder for scratch files where the output is no file; NULL: /tmp */
    const atomic_int *stop; /* non-zero: give up. May be NULL */
    const struct drps_log *log;
    void (*on_progress)(void *ctx, const struct drps_recommend_progress *progress); /* or NULL */
    void *ctx;
};

struct drps_recommend_result {
    uint64_t queries;                 /* users, or items whose similar ones were wanted */
    uint64_t items;                   /* that were allowed */
    uint64_t recommended;             /* over all queries */
    uint64_t few;                     /* queries that got fewer than n, as there were no more */
    uint64_t unknown_names;           /* skipped */
    uint64_t ratings;                 /* read, of `seen` and `fold_in` */
    uint64_t unknown_ratings;         /* of these: whose item the model does not have, or, but with
                                         `fold_in`, whose user */
    uint64_t skipped_lines;           /* bad ones of ratings */
    uint64_t item_passes;             /* times that the items were read */
    uint64_t item_bytes, query_bytes; /* of parameters, read for items and for queries */
    struct drps_evaluation test;      /* of `test` */
    uint64_t exact;                   /* scores computed in double */
    const char *products;             /* what multiplied: "openblas" or "own" */
    double product_seconds;           /* in products and in looking at scores, of thread 0 */
    double seconds;
};

/*
 * Returns 0, or among others DRPS_E_NOT_FOUND (no model there, or a name that it does not have),
 * DRPS_E_CORRUPT (a damaged one), DRPS_E_FORMAT (bad ratings: file:line:column, or a user whose
 * factors would be no floats), DRPS_E_CONFIG (a model without users and items, options that do not
 * go together, or an output that is read), -EEXIST (there is an output already), -EBUSY (another
 * process makes it), DRPS_E_MEMORY_BUDGET, DRPS_E_INTERRUPTED. Then the output is as it was before,
 * or, where nothing failed but the sync of its folder, complete.
 */
DRPS_MUST_CHECK
int drps_recommend_run(const struct drps_io *io, const struct drps_recommend_options *options,
                       struct drps_recommend_result *result, struct drps_err *err);

#endif
