/*
 * A filtered gradient on its way to one server (docs/wire.md): some rows whole, and of the others
 * the values that were chosen. Pure: which rows these are, both sides know. Shared inside engine/.
 */
#ifndef DRPS_ENGINE_CLUSTER_FILTERS_PUSH_MESSAGE_H
#define DRPS_ENGINE_CLUSTER_FILTERS_PUSH_MESSAGE_H

#include "engine/cluster/filters/drps_choose.h"

/* What both sides know of a message. */
struct drps_push_shape {
    size_t rows;
    uint32_t dim;
    int touches; /* 1: it says how many samples touch each row */
};

/* Returns the largest message, and the memory that reading one takes; UINT64_MAX if they cannot be
 * counted. */
uint64_t drps_push_bound(const struct drps_push_shape *shape);
uint64_t drps_push_reader_memory(const struct drps_push_shape *most);

/* ---- Writing ---- */

struct drps_push_gradient {
    const float *grads;      /* [rows][dim], with what was held back before */
    const uint32_t *touches; /* [rows] or NULL */
    const uint8_t *whole;    /* [rows] 1: sent whole */
    float *rest;             /* [rows][dim] filled in: what is held back, of rows that are not whole
                                and then of those that are */
    uint32_t *room;          /* [rows * dim + rows] */
    float *values;           /* [rows * dim] room */
};

struct drps_push_bits {
    uint32_t values, whole; /* of rows that are not whole, and that are: 8, 16 or 32 */
};

/* Returns the bytes written, at most drps_push_bound(). Values of fewer than 32 bits are sent as
 * 32-bit ones where one of them is no finite number. */
size_t drps_push_encode(const struct drps_push_shape *shape, const struct drps_push_choice *choice,
                        const struct drps_push_bits *bits,
                        const struct drps_push_gradient *gradient, void *out,
                        struct drps_push_counts *counts);

/* ---- Reading ---- */

struct drps_push_reader; /* opaque: room for the largest message */

/* NULL: no memory. */
struct drps_push_reader *drps_push_reader_new(const struct drps_push_shape *most);
void drps_push_reader_free(struct drps_push_reader *reader); /* NULL-safe */

/* *grads_out [rows][dim] and, with touches, *touches_out [rows] are the reader's until its next
 * call. DRPS_E_PROTO: the message does not fit the shape, or has values that are no finite numbers
 * and not of 32 bits. */
DRPS_MUST_CHECK
int drps_push_decode(struct drps_push_reader *reader, const struct drps_push_shape *shape,
                     const void *data, size_t bytes, const float **grads_out,
                     const uint32_t **touches_out, struct drps_err *err);

#endif
