/*
 * Topic models: non-negative sparse coding of documents on a dictionary of topics (docs/topics.md).
 *
 *   F(B, A) = sum over documents i of  |d_i - B a_i|^2 / 2 + l1 |a_i|_1  + rho / 2 |B|^2,  a_i >= 0
 *
 * Shapes: J topics, K words. d_i [K] are a document's words, a_i [J] its code; B [K][J] is the
 * dictionary, a row a word. The model is that of "Orpheus" (P. Xie and others, SoCC 2018, section
 * 2), whose updates are u = B a - d, v = a; here both blocks of variables are minimised exactly.
 *
 * A row has 1 + J floats. A document's: |d|^2 once its code counts, else 0; then the code. A
 * word's: 0; then c_k = the sum over documents of d_ik a_i. With A the sum of a_i a_i' the best
 * dictionary for all kept codes is b_k = M c_k, M = (A + rho I)^-1: no row has to hold it. G, the
 * sum of c_k c_k', gives B'B = M G M; so a document is coded from its own words' rows though zeros
 * count, as |d - B a|^2 = |d|^2 - 2 a'M (sum over its words of d_k c_k) + a'(M G M) a. And
 *
 *   F = |D|^2 / 2 - trace(M G) / 2 + l1 |codes|_1
 *
 * with the best B. A step codes a batch's documents anew with B fixed, from the codes that they
 * have, by coordinate descent; then B is the best one again. Neither makes F larger.
 *
 * In a document's first step its code is 0; of the first J documents with words the j-th gets the
 * code |d| e_j, unsolved: topics begin as documents.
 *
 * A, G and sums are in double; what changes a number is added in the order of samples and rows, and
 * then to the number. Results are the same with any number of members.
 *
 * Where there are several ranks, each has A, G and sums. In a round all code their batches with the
 * same B; then the rows' servers add up what the codes change, and all ranks what rows and codes
 * change of A, G and sums: it is the step of one batch that has the documents of all. Topics are
 * begun in turn: the m-th document of worker i that begins one begins topic i + m (workers). Shared
 * inside engine/.
 */
#ifndef DRPS_ENGINE_TOPIC_H
#define DRPS_ENGINE_TOPIC_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"
#include "index/plan/drps_batch.h"
#include "storage/drps_store.h"

struct drps_topic; /* opaque */

struct drps_topic_options {
    uint32_t topics; /* J */
    double l1;       /* >= 0 */
    double rho;      /* > 0 */
    unsigned members;
    uint32_t workers; /* ranks that have documents; 0: there is one rank */
    uint32_t worker;  /* which of them this is; `workers`: it has none */
};

/* Returns the bytes of memory. */
uint64_t drps_topic_memory(const struct drps_topic_options *options);

DRPS_MUST_CHECK
int drps_topic_open(const struct drps_topic_options *options, struct drps_topic **topic_out,
                    struct drps_err *err);
void drps_topic_close(struct drps_topic *t); /* NULL-safe */

/* ---- What checkpoints keep beside the rows ---- */

/* Rows of it, and bytes of each. */
uint64_t drps_topic_state_rows(uint32_t topics);
size_t drps_topic_state_row_bytes(uint32_t topics);

/* Borrowed: [state_rows][J] doubles: A, G, then |D|^2, the sum of codes, and how many topics have
 * begun on this rank. drps_topic_restore() must follow where it was written over. */
double *drps_topic_state(struct drps_topic *t);

/* Take up a state that was read. DRPS_E_CORRUPT: no run comes to it; `path` is named. */
DRPS_MUST_CHECK
int drps_topic_restore(struct drps_topic *t, const char *path, struct drps_err *err);

/* ---- Steps ---- */

/* A batch under way; m = batch->rows, D = 1 + J. All borrowed. */
struct drps_topic_step {
    const struct drps_batch *batch;
    const struct drps_rows *rows; /* that are changed; NULL: servers change them, of what is in
                                     `after` then, or documents are only scored */
    const float *before;          /* [m][D] the rows */
    float *after;                 /* [m][D] scratch; NULL: documents are only scored */
    float *scores;                /* [samples] what a document adds to F, with B before the step */
    float *codes;                 /* [samples][J] codes of scored documents; NULL: not wanted */
};

enum { DRPS_TOPIC_PHASES = 8 };

/* Do the member's share of a phase: 0 .. DRPS_TOPIC_PHASES - 1, one after another; all members must
 * have done one before any begins the next. A document that is scored begins with the code 0, and
 * entries of value 0 in it are left out. */
void drps_topic_work(struct drps_topic *t, const struct drps_topic_step *step, unsigned phase,
                     unsigned member);

/* ---- Steps of several ranks ----
 *
 * A worker's step with rows NULL leaves in `after` what goes to the rows' servers: documents' rows
 * as they are to be, and what words' rows gain, whose first float is 0. Then, one after another:
 * the rank's server has all workers' sums of that and calls drps_topic_change_rows(); all ranks add
 * up drps_topic_changes(); each calls drps_topic_apply().
 */

/* Change rows [n] by changes [n][D], and note what that adds to G. */
void drps_topic_change_rows(struct drps_topic *t, const struct drps_rows *rows, size_t n,
                            const float *changes);

/* Returns how many numbers a rank has to add to those of the others; 0: of no topics. */
static inline size_t drps_topic_changes_n(uint32_t topics)
{
    return topics ? (size_t)topics * (topics + 1) + 2 : 0;
}

/* Borrowed: [changes_n] what the step adds to A and G, upper triangles, |D|^2 and codes. */
double *drps_topic_changes(struct drps_topic *t);

/* Take up the sum over all ranks. */
void drps_topic_apply(struct drps_topic *t);

/* ---- Results, between steps ---- */

/* Returns F of all documents whose codes count. */
double drps_topic_objective(struct drps_topic *t);

/* How many numbers the upper triangle of B'B has; row after row, it is the model's `gram`. */
static inline size_t drps_topic_gram_n(uint32_t topics)
{
    return (size_t)topics * (topics + 1) / 2;
}

/* Borrowed until the next call. */
const double *drps_topic_gram(struct drps_topic *t);

/* Passes on rows whose words have b in the place of c: ctx of drps_topic_visit_dictionary(), a
 * drps_row_visit of whole rows, D floats each. */
struct drps_topic_visit {
    struct drps_topic *topic;
    drps_row_visit visit;
    void *ctx;
};
DRPS_MUST_CHECK
int drps_topic_visit_dictionary(void *ctx, uint64_t first, size_t n, const void *rows,
                                struct drps_err *err);

/* ---- A finished model ---- */

/* Open to score documents alone, of rows whose words have b.
 * DRPS_E_CORRUPT: it is of no dictionary; `path` is named. */
DRPS_MUST_CHECK
int drps_topic_open_scorer(const struct drps_topic_options *options, const double *gram,
                           const char *path, struct drps_topic **topic_out, struct drps_err *err);

#endif
