/* Rows of a part in pieces that fit the memory: rows of an earlier run come in any order, and all
 * rows go out in order. Private to engine/warm/. */
#ifndef DRPS_ENGINE_WARM_PIECES_H
#define DRPS_ENGINE_WARM_PIECES_H

#include "engine/step/drps_server.h"

struct warm_pieces; /* opaque; its rows lie in a file, each behind its number */

struct warm_pieces_options {
    const struct drps_io *io;
    const char *dir; /* of the file, which is removed in the end */
    const struct drps_server *server;
    uint64_t rows;         /* of the part */
    uint64_t memory_bytes; /* at most, of either half of the work */
};

/* DRPS_E_MEMORY_BUDGET says how much would do. */
DRPS_MUST_CHECK
int drps_warm_pieces_new(const struct warm_pieces_options *o, struct warm_pieces **p_out,
                         struct drps_err *err);
void drps_warm_pieces_free(struct warm_pieces *p); /* NULL-safe */

/* Row `row` of the part will come. All of them are announced before the first one comes. */
void drps_warm_pieces_expect(struct warm_pieces *p, uint32_t row);
/* No more rows are announced. */
DRPS_MUST_CHECK
int drps_warm_pieces_begin(struct warm_pieces *p, struct drps_err *err);
/* It comes: row_bytes of the server's rows. */
DRPS_MUST_CHECK
int drps_warm_pieces_add(struct warm_pieces *p, uint32_t row, const void *bytes,
                         struct drps_err *err);
/* All that were announced have come: all rows go out, fresh ones where none came. */
DRPS_MUST_CHECK
int drps_warm_pieces_end(struct warm_pieces *p, drps_row_visit visit, void *ctx,
                         struct drps_err *err);

#endif
