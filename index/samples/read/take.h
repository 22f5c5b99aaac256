/* Samples as they were read get ids for their features and go to a spool. Private to
 * index/samples/read/. */
#ifndef DRPS_INDEX_SAMPLES_READ_TAKE_H
#define DRPS_INDEX_SAMPLES_READ_TAKE_H

#include "index/hashing/drps_hasher.h"
#include "index/samples/drps_read_samples.h"
#include "index/samples/read/ahead.h"
#include "index/samples/read/numbers.h"
#include "index/samples/read/places.h"

struct taker {
    const struct index_progress *progress;
    const struct drps_index_options *options; /* its own */
    struct read_samples *out;
    struct sample_places places;
    uint64_t number; /* of the next sample of all inputs */
    uint32_t owner;  /* of the samples of the piece at hand */
    uint32_t *ids;
    size_t ids_cap;
    int sample_rows;            /* training samples have a row of their own */
    struct drps_samples own;    /* one sample with its row's entry; sample_rows */
    struct drps_hasher *hasher; /* own; NULL: features are not hashed */
    uint64_t no_key;            /* the one feature of samples that have numbers by place, and */
    float one;                  /* its value */
    struct sample_numbers numbers;
};

/* Have it take samples to *out. The caller destroys it, also after a failure. */
DRPS_MUST_CHECK
int drps_taker_init(struct taker *t, const struct index_progress *progress,
                    struct read_samples *out, struct drps_err *err);
void drps_taker_destroy(struct taker *t);

/* Take all that is read. Returns 0 or a negative code. */
DRPS_MUST_CHECK
int drps_take_all(struct taker *t, struct ahead *a, struct drps_err *err);

/* Take samples of the earlier plan, with rows for ids, if options say so; they come first. */
DRPS_MUST_CHECK
int drps_take_replayed(struct taker *t, struct drps_err *err);

#endif
