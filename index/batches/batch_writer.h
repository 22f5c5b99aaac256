/*
 * Batches that are gathered are given their rows in order and written: data.rec, rows.rec. That
 * takes longer than gathering, so it can be done in threads, some batches behind. Private to
 * index/batches/.
 */
#ifndef DRPS_INDEX_BATCHES_BATCH_WRITER_H
#define DRPS_INDEX_BATCHES_BATCH_WRITER_H

#include "base/record/drps_recfile.h"
#include "index/batches/drps_encoder.h"
#include "index/plan/drps_plan.h"

/* A batch as its samples came. Zero it first; arrays are kept from batch to batch. */
struct gathered {
    float *labels;
    uint32_t *starts;
    size_t n, label_cap, start_cap;
    uint32_t *rows;   /* [nnz] */
    float *values;    /* [nnz] if has_values */
    float *weights;   /* [n] if has_weights */
    uint16_t *fields; /* [nnz] if field_count */
    float *numbers;   /* [n][numbers_each] */
    size_t nnz, row_cap, value_cap, weight_cap, field_cap, number_cap;
    int has_values, has_weights;
    uint32_t field_count;  /* fields are below it; 0: there are none */
    uint32_t numbers_each; /* numbers of a sample by place; 0: there are none */
    uint32_t stratum, lane;
};

void drps_gathered_free(struct gathered *g);

struct batch_writer;

/* More threads would wait for what gathers. */
enum { BATCH_WRITER_THREADS_MOST = 2, BATCH_WRITER_HANDED_MOST = 16 };

/* Open a writer. data and rows are borrowed; common is that of the batcher. With 0 threads, or
 * where none can be started, the caller writes all. */
DRPS_MUST_CHECK
int drps_batch_writer_open(struct drps_recwriter *data, struct drps_recwriter *rows,
                           uint32_t common, struct encoder_ways ways, unsigned threads,
                           struct batch_writer **w_out, struct drps_err *err);
/* Close the writer, once what was handed over is written. */
void drps_batch_writer_close(struct batch_writer *w);

/* Write a batch, be it without samples, which then has no rows either; after those handed over.
 * Once a batch has failed, nothing more is written: this and what follows return its error. */
DRPS_MUST_CHECK
int drps_batch_writer_write(struct batch_writer *w, const struct gathered *g, struct drps_err *err);
/* Release the memory that writing took: the next batch takes as much as it needs. After
 * drps_batch_writer_write().
 */
void drps_batch_writer_shrink(struct batch_writer *w);
/* Write a batch in a thread, once fewer than `most` batches (1 .. BATCH_WRITER_HANDED_MOST) are
 * handed over and not written. Its arrays are the writer's then, and *g has others, of whatever
 * contents, or none. `large`: they are freed once they are written. An error may be that of a batch
 * before. */
DRPS_MUST_CHECK
int drps_batch_writer_hand(struct batch_writer *w, struct gathered *g, size_t most, int large,
                           struct drps_err *err);
/* Wait until all is written. */
DRPS_MUST_CHECK
int drps_batch_writer_wait(struct batch_writer *w, struct drps_err *err);

/* Raise the maxima in info by what was written. After drps_batch_writer_wait(). */
void drps_batch_writer_maxima(const struct batch_writer *w, struct drps_plan_info *info);

#endif
