/* Rows are read block by block, names page by page, and stay. */
#include "engine/predict/memory_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/folder/drps_manifest.h"

enum { LOAD_ROWS = 4096, BITS_LEAST = 4, BITS_MOST = 34 };

static unsigned bits_for(uint64_t rows)
{
    unsigned bits = BITS_LEAST;
    while (bits < BITS_MOST && (UINT64_C(1) << bits) < 2 * rows)
        bits++;
    return bits;
}

uint64_t drps_memory_names_bytes(const struct drps_modeldir_info *info)
{
    return (UINT64_C(1) << bits_for(info->rows)) * sizeof(struct drps_memory_name);
}

uint64_t drps_memory_rows_bytes(const struct drps_modeldir_info *info)
{
    return drps_product(info->rows, info->model.dim * sizeof(float));
}

/* Keys of numbers are small and close: multiplied, their upper bits differ. */
static uint64_t place_of(const struct drps_memory_rows *m, uint64_t key)
{
    return key * UINT64_C(0x9e3779b97f4a7c15) >> (64 - m->bits);
}

static int load_params(struct drps_memory_rows *m, struct drps_modeldir *md, struct drps_err *err)
{
    uint32_t ids[LOAD_ROWS];
    int rc = 0;
    m->params_bytes = (size_t)drps_memory_rows_bytes(drps_modeldir_info(md));
    m->params = drps_pages_new(m->params_bytes ? m->params_bytes : 1);
    if (!m->params)
        return drps_err_set(err, -ENOMEM, "no memory for %llu rows of the model",
                            (unsigned long long)m->rows);
    for (uint64_t first = 0; first < m->rows && rc == 0; first += LOAD_ROWS) {
        const size_t n = m->rows - first < LOAD_ROWS ? (size_t)(m->rows - first) : LOAD_ROWS;
        for (size_t i = 0; i < n; i++)
            ids[i] = (uint32_t)(first + i);
        rc = drps_modeldir_gather(md, ids, n, m->params + first * m->dim, err);
    }
    return rc;
}

static int add_name(void *ctx, uint64_t key, uint32_t row, unsigned field, const char *text,
                    size_t bytes, struct drps_err *err)
{
    struct drps_memory_rows *m = ctx;
    const uint64_t mask = (UINT64_C(1) << m->bits) - 1;
    (void)field, (void)text, (void)bytes;
    if (row >= m->rows || m->named++ >= m->rows)
        return drps_err_set(err, DRPS_E_CORRUPT,
                            DRPS_MODEL_NAMES " names row %u; the model has %llu rows", row,
                            (unsigned long long)m->rows);
    uint64_t at = place_of(m, key);
    while (m->names[at].row != DRPS_NO_ROW && m->names[at].key != key)
        at = (at + 1) & mask;
    m->names[at] = (struct drps_memory_name){key, row};
    return 0;
}

int drps_memory_rows_load(struct drps_memory_rows *m, struct drps_modeldir *md, int with_rows,
                          struct drps_err *err)
{
    const struct drps_modeldir_info *info = drps_modeldir_info(md);
    *m = (struct drps_memory_rows){
        .rows = info->rows, .dim = info->model.dim, .md = md, .bits = bits_for(info->rows)};
    m->names = malloc((size_t)drps_memory_names_bytes(info));
    if (!m->names)
        return drps_err_set(err, -ENOMEM, "no memory for the names of %llu rows",
                            (unsigned long long)m->rows);
    for (uint64_t i = 0; i < UINT64_C(1) << m->bits; i++)
        m->names[i].row = DRPS_NO_ROW;
    int rc = with_rows ? load_params(m, md, err) : 0;
    return rc == 0 ? drps_modeldir_scan_names(md, add_name, m, err) : rc;
}

void drps_memory_rows_free(struct drps_memory_rows *m)
{
    if (m->params) drps_pages_free(m->params, m->params_bytes ? m->params_bytes : 1);
    free(m->names);
    *m = (struct drps_memory_rows){.rows = 0};
}

int drps_memory_rows_lookup(void *ctx, const uint64_t *keys, size_t n, uint32_t *rows_out,
                            struct drps_err *err)
{
    const struct drps_memory_rows *m = ctx;
    const uint64_t mask = (UINT64_C(1) << m->bits) - 1;
    (void)err; /* all is there */
    for (size_t i = 0; i < n; i++) {
        uint64_t at = place_of(m, keys[i]);
        while (m->names[at].row != DRPS_NO_ROW && m->names[at].key != keys[i])
            at = (at + 1) & mask;
        rows_out[i] = m->names[at].row;
    }
    return 0;
}

int drps_memory_rows_gather(void *ctx, const uint32_t *ids, size_t n, float *params,
                            struct drps_err *err)
{
    const struct drps_memory_rows *m = ctx;
    if (!m->params) return drps_modeldir_gather(m->md, ids, n, params, err);
    if (n && ids[n - 1] >= m->rows)
        return drps_err_set(err, DRPS_E_CORRUPT, "row %u asked for: the model has %llu", ids[n - 1],
                            (unsigned long long)m->rows);
    for (size_t i = 0; i < n; i++)
        memcpy(params + i * m->dim, m->params + ids[i] * m->dim, m->dim * sizeof(*params));
    return 0;
}
