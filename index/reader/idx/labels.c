/* Reads labels of IDX files (labels.h), beside their items. */
#include "index/reader/idx/labels.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { BUFFER = 64 << 10 };

int drps_idx_labels_init(struct drps_idx_labels *l, const struct drps_io *io,
                         const atomic_int *stop, uint64_t codec_limit_bytes, struct drps_err *err)
{
    memset(l, 0, sizeof(*l));
    int rc = drps_input_init(&l->in, io, BUFFER, codec_limit_bytes, err);
    l->in.stop = stop;
    return rc;
}

void drps_idx_labels_destroy(struct drps_idx_labels *l)
{
    if (l->in.buf) drps_input_destroy(&l->in);
    drps_bytes_free(&l->bytes);
}

int drps_idx_labels_open(struct drps_idx_labels *l, const char *path, uint64_t items,
                         const char *of, struct drps_err *err)
{
    int rc = drps_input_open(&l->in, path, err);
    if (rc == 0) rc = drps_bytes_begin(&l->bytes, &l->in, NULL, 0, err);
    if (rc == 0) rc = drps_idx_head_read(&l->bytes, &l->head, err);
    if (rc < 0) return rc;
    if (l->head.dimensions != 1)
        return drps_err_set(err, DRPS_E_FORMAT,
                            "%s: byte 3: %u dimensions, and labels have one: is this a file of "
                            "labels?",
                            l->in.name, l->head.dimensions);
    if (l->head.items == items) return 0;
    return drps_err_set(err, DRPS_E_FORMAT,
                        "%s: byte 4: %llu labels, and %s has %llu samples: these are others' "
                        "labels",
                        l->in.name, (unsigned long long)l->head.items, of,
                        (unsigned long long)items);
}

/* A label as it would be written in a text. */
static void to_text(unsigned type, double label, char text_out[DRPS_IDX_LABEL_BYTES])
{
    const int digits = type == DRPS_IDX_F64 ? 17 : 9;
    if (drps_idx_is_real(type))
        (void)snprintf(text_out, DRPS_IDX_LABEL_BYTES, "%.*g", digits, label); /* fits */
    else
        (void)snprintf(text_out, DRPS_IDX_LABEL_BYTES, "%.0f", label);
}

int drps_idx_labels_next(struct drps_idx_labels *l, float *label_out,
                         char text_out[DRPS_IDX_LABEL_BYTES], struct drps_err *err)
{
    const size_t bytes = l->head.item_bytes;
    if (drps_bytes_left(&l->bytes) < bytes) {
        int rc = drps_bytes_need(&l->bytes, bytes, err);
        if (rc < 0) return rc;
        if (drps_bytes_left(&l->bytes) < bytes) return drps_idx_cut(&l->bytes, &l->head, err);
    }
    const uint64_t at = l->bytes.offset;
    const double label = drps_idx_number(l->head.type, drps_bytes_take(&l->bytes, bytes));
    *label_out = (float)label;
    if (!isfinite(*label_out))
        return drps_err_set(err, DRPS_E_FORMAT,
                            "%s: byte %llu: the label %g is no number that a float can hold",
                            l->in.name, (unsigned long long)at, label);
    to_text(l->head.type, label, text_out);
    return 0;
}

int drps_idx_labels_end(struct drps_idx_labels *l, struct drps_err *err)
{
    return drps_idx_end(&l->bytes, &l->head, err);
}
