/* The labels of an IDX file, from another one. Private to index/reader/idx/. */
#ifndef DRPS_INDEX_READER_IDX_LABELS_H
#define DRPS_INDEX_READER_IDX_LABELS_H

#include "index/reader/idx/head.h"

enum { DRPS_IDX_LABEL_BYTES = 32 }; /* of a label as text, at most */

struct drps_idx_labels {
    struct drps_input in;
    struct drps_bytes bytes;
    struct drps_idx_head head;
};

DRPS_MUST_CHECK
int drps_idx_labels_init(struct drps_idx_labels *l, const struct drps_io *io,
                         const atomic_int *stop, uint64_t codec_limit_bytes, struct drps_err *err);
void drps_idx_labels_destroy(struct drps_idx_labels *l); /* zeroed, too */

/* Open the labels at path, which is borrowed while they are read, of so many items of the file
 * `of`. DRPS_E_FORMAT: there are more or fewer, or they have more than one dimension. */
DRPS_MUST_CHECK
int drps_idx_labels_open(struct drps_idx_labels *l, const char *path, uint64_t items,
                         const char *of, struct drps_err *err);

/* The next label, one of those that the header promises, also as text. DRPS_E_FORMAT: the file is
 * cut off, or this is no number that a float can hold. */
DRPS_MUST_CHECK
int drps_idx_labels_next(struct drps_idx_labels *l, float *label_out,
                         char text_out[DRPS_IDX_LABEL_BYTES], struct drps_err *err);

/* The last label was read: nothing may follow. */
DRPS_MUST_CHECK
int drps_idx_labels_end(struct drps_idx_labels *l, struct drps_err *err);

#endif
