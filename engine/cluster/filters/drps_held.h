/*
 * What a worker has held back of some rows, on its way to their server alone (docs/wire.md): the
 * rows' numbers among those of a batch that the server has, and their values. Pure. Shared inside
 * engine/.
 */
#ifndef DRPS_ENGINE_CLUSTER_FILTERS_HELD_H
#define DRPS_ENGINE_CLUSTER_FILTERS_HELD_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"

struct drps_held {
    uint32_t *rows; /* [n] increasing */
    float *values;  /* [n][dim] */
    size_t n;
};

/* Returns the bytes written: at most those of the list and the values of n rows. */
size_t drps_held_encode(const struct drps_held *held, uint32_t dim, void *out);

/* rows and values of *out have room for `rows` rows, of which the message has some. DRPS_E_PROTO:
 * it does not fit them. */
DRPS_MUST_CHECK
int drps_held_decode(const void *data, size_t bytes, size_t rows, uint32_t dim,
                     struct drps_held *out, struct drps_err *err);

#endif
