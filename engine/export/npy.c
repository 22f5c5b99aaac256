/*
 * NumPy's format, version 1.0: the bytes 93 'NUMPY' 1 0, the head's length as u16, a head that is a
 * Python dictionary, blanks and a line end up to a multiple of 64 bytes, then the array.
 */
#include <stdio.h>
#include <string.h>

#include "base/drps_endian.h"
#include "base/folder/drps_escape.h"
#include "engine/export/kinds.h"

enum { FRONT_BYTES = 10, HEAD_BYTES = 128 };

static int npy_begin(struct exporter *e, struct drps_err *err)
{
    char head[HEAD_BYTES + 1] = {(char)0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0};
    head[8] = (char)(HEAD_BYTES - FRONT_BYTES);
    const int n = snprintf(head + FRONT_BYTES, HEAD_BYTES - FRONT_BYTES,
                           "{'descr': '<f4', 'fortran_order': False, 'shape': (%llu, %u), }",
                           (unsigned long long)e->rows, e->info->model.dim);
    memset(head + FRONT_BYTES + n, ' ', (size_t)(HEAD_BYTES - FRONT_BYTES - n));
    head[HEAD_BYTES - 1] = '\n';
    return drps_textfile_put(&e->out, head, HEAD_BYTES, err);
}

static int npy_row(void *ctx, const struct drps_readout_row *row, struct drps_err *err)
{
    struct exporter *e = ctx;
    int rc = drps_textfile_put_name(&e->names, DRPS_NAME_IN_TABS, row->name, row->name_bytes, err);
    if (rc == 0) rc = drps_textfile_put(&e->names, "\n", 1, err);
    return rc == 0 ? drps_textfile_put(&e->out, (const char *)row->params,
                                       e->info->model.dim * sizeof(float), err)
                   : rc;
}

const struct export_kind export_npy = {
    .name = "npy", .end = ".npy", .has_names = 1, .begin = npy_begin, .row = npy_row};
