/*
 * Homes: the machine that holds each row, chosen row by row.
 *
 * Batches of worker i use row r a_ri times, those of all workers a_r times. Where r is at home on
 * machine h, h serves it a_r - a_rh times to others, and every other worker i pulls it a_ri times.
 * The *link* of a machine carries what it serves and what its worker pulls; each of these rows goes
 * one way as parameters and the other as a gradient, so both directions carry as much:
 *
 *   link_i = sum over rows at home on i of (a_r - a_ri) + sum over all others of a_ri
 *
 * The sum of links is twice the remote rows, which are fewest where each row is at home with the
 * worker that uses it most (the affinity bound). From there rows move from busy links to others,
 * those first that cost the fewest remote rows for what they take off the busy link: rows that all
 * use alike cost nothing, and carry most.
 *
 * Rows are streamed: what is kept of a row is its home. Everything is deterministic.
 */
#ifndef DRPS_PARTITION_HOMES_H
#define DRPS_PARTITION_HOMES_H

#include "partition/drps_partition.h"

/* Row `row`, used by n >= 1 machines: touches by rising machine, borrowed until return. 0 or an
 * error, which ends the walk. */
typedef int (*drps_row_visit)(void *ctx, uint32_t row, const struct drps_touch *touches, size_t n,
                              struct drps_err *err);

/* Rows that are somewhere else: walk() visits those of 0 .. rows - 1 that are used, the same every
 * time, in the same order. It returns 0, its own error, or what visit() returned. */
struct drps_row_stream {
    uint32_t rows;
    int (*walk)(void *ctx, drps_row_visit visit, void *visit_ctx, struct drps_err *err);
    void *ctx;
};

struct drps_homes_options {
    uint32_t machines;   /* W, 1 .. DRPS_HOMES_MACHINES */
    uint32_t holders;    /* machines 0 .. holders - 1 may hold rows; 0: all */
    uint32_t first_stay; /* so many rows from 0 on are at home on machine 0, whoever uses them */
};
enum { DRPS_HOMES_MACHINES = 65535 };

struct drps_home_load {
    uint64_t rows;           /* that it holds */
    uint64_t pulled, served; /* rows an epoch; their sum is its link */
};

/*
 * home_out [stream->rows] and load_out [W] are caller-owned. No machine holds more than 1.25 times
 * the average rows, or the average and one, but for the rows that stay on the first. Within that
 * the busiest link carries at most 1.05 times the average, unless rows that others could serve
 * instead are too few for it. Averages are those of the machines that may hold rows: the others'
 * links are what their workers pull.
 *
 * Memory: none. Passes over the rows: 1, and up to 8 where links are uneven; where rows are, up to
 * 33 more.
 * Returns 0, DRPS_E_CONFIG (machines, holders), -EINVAL (touches that contradict the above), or
 * what walk() returned.
 */
DRPS_MUST_CHECK
int drps_homes_place(const struct drps_row_stream *stream, const struct drps_homes_options *o,
                     uint16_t *home_out, struct drps_home_load *load_out, struct drps_err *err);

/* The busiest link over the average; 1 where nothing moves. */
double drps_homes_imbalance(const struct drps_home_load *load, uint32_t machines);

#endif
