/*
 * Rows that are handed on under BSP: where one worker alone uses a row of another server in several
 * rounds after each other, or several workers do so in turn, the server *lends* the row with its
 * optimizer's state. The worker steps the row itself and keeps it, hands it on to the worker of the
 * next use, or returns it. So an epoch's training begins and ends with all rows at their servers.
 *
 * Two files of a rank's plan have a record a round: handed.rec says what its worker does with the
 * rows of its batch, lent.rec what its server does with the rows of all batches. Rows have no ids
 * there. Rows that these records do not name are pulled and pushed as ever; records of evaluation
 * rounds name none.
 */
#ifndef DRPS_INDEX_PLAN_HANDED_H
#define DRPS_INDEX_PLAN_HANDED_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"

/* ---- The worker's records ---- */

/* What becomes of a row after its step; any other number is the rank of the worker that gets it. */
#define DRPS_HANDED_KEPT UINT32_MAX
#define DRPS_HANDED_RETURNED (UINT32_MAX - 1)

/* The bounds of a record. */
struct drps_handed_most {
    size_t rows;    /* of the batch */
    uint64_t slots; /* of the worker */
    uint32_t ranks, rank;
};

struct drps_handed_rows {
    /* Rows that other workers have handed on after the round before, in the order of their slots;
     * each sender's message has its rows in this order. */
    uint32_t *arrive_slot, *arrive_from; /* [arrive_n], room for all slots */
    uint32_t arrive_n;
    /* Rows of the batch that the worker has itself, in the order of the batch. */
    uint32_t *place; /* [used_n], room for all rows: which of the batch's rows it is */
    uint32_t *slot;  /* [used_n] of the worker's memory */
    uint32_t *to;    /* [used_n] */
    uint8_t *taken;  /* [used_n] 1: the server sends it in this round */
    uint32_t used_n;
    uint32_t *room; /* that coding needs: for all rows */
};

/* The arrays of a record within these bounds. -ENOMEM; free() works on what there is. */
DRPS_MUST_CHECK
int drps_handed_allocate(struct drps_handed_rows *rows, const struct drps_handed_most *most,
                         struct drps_err *err);
void drps_handed_free(struct drps_handed_rows *rows);
uint64_t drps_handed_memory(const struct drps_handed_most *most);

/* Returns the bytes that a record takes at most. */
size_t drps_handed_encode_bound(const struct drps_handed_rows *rows);

/* Returns the bytes written. */
size_t drps_handed_encode(const struct drps_handed_rows *rows, void *out);

/* DRPS_E_CORRUPT: the record is malformed, or not within its bounds. Which slot holds a row when is
 * not looked at: drps-stat --verify does that. */
DRPS_MUST_CHECK
int drps_handed_decode(const void *record, size_t bytes, const struct drps_handed_most *most,
                       struct drps_handed_rows *rows, struct drps_err *err);

/* ---- The server's records ---- */

/* What becomes of a use, as bits: the worker has the row; it gets it in this round, with its state,
 * in place of the parameters; it returns it, in place of the gradient. */
enum { DRPS_LENT_AWAY = 1, DRPS_LENT_GIVEN = 2, DRPS_LENT_RETURNED = 4 };

struct drps_lent_rows {
    uint8_t *use;   /* [n] of each use in positions.rec; 0: a plain one */
    uint32_t *room; /* [2 n] that coding needs */
    uint32_t n;
};

size_t drps_lent_encode_bound(size_t n);
size_t drps_lent_encode(const struct drps_lent_rows *rows, void *out);

/* DRPS_E_CORRUPT: the record is malformed, or is not of so many uses. */
DRPS_MUST_CHECK
int drps_lent_decode(const void *record, size_t bytes, const struct drps_lent_rows *rows,
                     struct drps_err *err);

#endif
