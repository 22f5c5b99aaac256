/*
 * The spool: samples between parsing and batching, on disk beyond a share of the memory,
 * distributed over 32 buckets. Shared inside index/.
 *
 * A sample's order is a 64-bit number, random for a shuffled order (for a grid
 * see drps_grid.h). The bucket is its top five bits, so bucket after bucket, sorted within, is the
 * whole order; a bucket too large for memory is split again by the next five bits. The order
 * therefore depends on the seed alone, not on memory.
 *
 * Features are *provisional ids*: numbers that the dictionary gave out while parsing. When the
 * dictionary had to start over (a new generation, see drps_dict.h), ids of one generation lie
 * between two marks of every bucket file, and drps_spool_relabel() rewrites them a generation at a
 * time.
 */
#ifndef DRPS_INDEX_SAMPLES_SPOOL_H
#define DRPS_INDEX_SAMPLES_SPOOL_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_io.h"

enum { SPOOL_BUCKETS = 32 };

/* Spools of training samples get a tenth of a run's memory, those of test samples a fortieth: an
 * eighth together. */
enum { SPOOL_TRAIN_SHARE = 10, SPOOL_TEST_SHARE = 40 };

/* n is below SPOOL_ENTRIES_MOST, and so are numbers_bytes. */
enum { SPOOL_ENTRIES_MOST = 1 << 27 };
struct spool_sample {
    uint64_t order;
    float label;
    float weight;   /* > 0 */
    uint32_t owner; /* the worker that keeps it, where samples stay with their files; else 0 */
    uint32_t n;
    uint32_t *ids;          /* [n] */
    const float *values;    /* [n], or NULL: all 1 */
    const uint16_t *fields; /* [n], or NULL: entries have none */
    const void *numbers;    /* [numbers_bytes] of a sample that has numbers by place, packed
                               (codec/drps_dense.h), and one entry, without a field; else NULL */
    uint32_t numbers_bytes; /* a multiple of four */
};

/* Unpack the numbers of a sample. Returns 1, or 0: there are not `each` of them. */
int drps_spool_numbers(const struct spool_sample *sample, uint32_t each, float *out);

struct spool;

/* One file a bucket, dir/<name>-<bucket>; buckets is 1 (order of arrival) or SPOOL_BUCKETS. The
 * first memory_bytes, in chunks of 256 KiB, stay in memory until their bucket is drained; buffers
 * of chunks that go to the files come on top. */
DRPS_MUST_CHECK
int drps_spool_open(const struct drps_io *io, const char *dir, const char *name, unsigned buckets,
                    uint64_t memory_bytes, struct spool **s_out, struct drps_err *err);
DRPS_MUST_CHECK
int drps_spool_add(struct spool *s, const struct spool_sample *sample, struct drps_err *err);
/* A new generation of ids begins here. */
DRPS_MUST_CHECK
int drps_spool_mark(struct spool *s, struct drps_err *err);
DRPS_MUST_CHECK
int drps_spool_finish(struct spool *s, struct drps_err *err);

/* Replace ids of generation g by map[id - base], a chunk of samples at a time. */
DRPS_MUST_CHECK
int drps_spool_relabel(struct spool *s, size_t generation, uint32_t base, const uint32_t *map,
                       struct drps_err *err);

struct spool_visitor {
    int (*visit)(void *ctx, struct spool_sample *sample, struct drps_err *err); /* may change ids */
    /* The ids of a sample that will be visited soon; may be NULL. */
    void (*expect)(void *ctx, const uint32_t *ids, uint32_t n);
    void *ctx;
    int ahead; /* 1: while the samples of a bucket are visited, a thread reads and sorts the next
                  one, if memory_bytes has room for both. The order is the same. */
};

/* Visit all samples in order. Files are removed as they are consumed. */
DRPS_MUST_CHECK
int drps_spool_drain(struct spool *s, uint64_t memory_bytes, const struct spool_visitor *visitor,
                     struct drps_err *err);

/* Visit all samples of a spool of one bucket, which stays as it is: what the visitor changes is
 * lost. After drps_spool_finish(). */
DRPS_MUST_CHECK
int drps_spool_walk(struct spool *s, const struct spool_visitor *visitor, struct drps_err *err);

void drps_spool_close(struct spool *s);

#endif
