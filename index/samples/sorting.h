/*
 * The samples of a bucket in memory, sorted. Private to index/samples/.
 */
#ifndef DRPS_INDEX_SAMPLES_SORTING_H
#define DRPS_INDEX_SAMPLES_SORTING_H

#include <stddef.h>
#include <stdint.h>

#include "index/samples/bucket.h"

/* A sample's order, and where it lies in a bucket. */
struct ordered {
    uint64_t order, at;
};

/* Memory for the samples of a bucket, used again for other ones. All 0: none. */
struct sorting {
    char *data;                   /* [bytes] samples as they arrived */
    const struct ordered *sorted; /* [samples] */
    size_t bytes, samples;
    struct ordered *ordered, *aux;         /* own; one of them is `sorted` */
    size_t data_cap, ordered_cap, aux_cap; /* bytes */
};

/* Read a bucket, close it, and sort its samples by order, equal ones by arrival. Bits of the order
 * from `shift` on are the same. Other buckets may be used by other threads meanwhile. */
DRPS_MUST_CHECK
int drps_sorting_fill(struct sorting *w, struct bucket_store *store, struct bucket *b,
                      unsigned shift, struct drps_err *err);

/* How many bytes a bucket takes in memory that has none yet, and in this memory; and how many this
 * memory has. */
uint64_t drps_sorting_bytes(const struct bucket *b);
uint64_t drps_sorting_bytes_in(const struct sorting *w, const struct bucket *b);
uint64_t drps_sorting_held(const struct sorting *w);

void drps_sorting_free(struct sorting *w);

#endif
