/*
 * Row lists, unpacked ahead of their consumer by a thread of its own. Private to engine/.
 */
#ifndef DRPS_LISTAHEAD_H
#define DRPS_LISTAHEAD_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_recstream.h"

enum { DRPS_LISTAHEAD_DEPTH = 8 };

struct drps_listahead; /* opaque; owns a thread */

/* The stream of packed lists is borrowed until close; only this object calls its next(). */
DRPS_MUST_CHECK
int drps_listahead_open(struct drps_recstream *stream, size_t max_rows,
                        struct drps_listahead **a_out, struct drps_err *err);
void drps_listahead_close(struct drps_listahead *a); /* NULL-safe */

/* The next list, valid until the next call. Returns 1, 0 after the last one, or the error that
 * ended it. */
DRPS_MUST_CHECK
int drps_listahead_next(struct drps_listahead *a, const uint32_t **ids_out, size_t *n_out,
                        struct drps_err *err);

uint64_t drps_listahead_memory(size_t max_rows);

/* Take the next record of the stream apart into ids [max_rows]. As drps_listahead_next(), without a
 * thread. */
DRPS_MUST_CHECK
int drps_listahead_decode(struct drps_recstream *stream, size_t max_rows, uint32_t *ids,
                          size_t *n_out, struct drps_err *err);

#endif
