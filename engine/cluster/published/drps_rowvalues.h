/*
 * A row's values on their way from its server: of 32 bits, of 16 (float16), or of 8, which share an
 * exponent of a byte. What was rounded once is sent without loss, so that both sides have the same
 * bits. Pure. Shared inside engine/.
 */
#ifndef DRPS_ENGINE_CLUSTER_PUBLISHED_ROWVALUES_H
#define DRPS_ENGINE_CLUSTER_PUBLISHED_ROWVALUES_H

#include <stddef.h>
#include <stdint.h>

/* Returns the bytes of a row of dim values of 32, 16 or 8 bits. */
size_t drps_rowvalues_bytes(uint32_t bits, uint32_t dim);

/* Round the row to what arrives. Values that are no finite numbers stay; finite ones stay finite.
 * Returns whether all are finite: only such a row can be written in fewer than 32 bits. */
int drps_rowvalues_round(uint32_t bits, float *row, uint32_t dim);

/* Write a row that was rounded to so many bits. */
void drps_rowvalues_write(uint32_t bits, const float *row, uint32_t dim, unsigned char *out);

/* Returns 0, or -1 where values of fewer than 32 bits are no finite numbers. */
int drps_rowvalues_read(uint32_t bits, const unsigned char *data, uint32_t dim, float *row_out);

#endif
