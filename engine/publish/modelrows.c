/* Parameters of all rows in order become a database of equal runs: the writing half of a model's
 * rows/. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_checksum.h"
#include "engine/publish/drps_modeldir.h"
#include "storage/kv/drps_kv.h"

enum { GROUP = 64 }; /* values written at a time */

struct drps_modelrows {
    const struct drps_kv_ops *ops;
    struct drps_kv *kv;
    struct drps_summer *content;
    uint64_t rows, next; /* of the model; the first that has not come */
    size_t param_bytes;
    size_t block_rows;
    char *group; /* [GROUP * block_rows][param_bytes] rows not written yet */
    size_t used; /* of them */
};

uint64_t drps_modeldir_block_rows(uint32_t dim)
{
    const uint64_t n = DRPS_MODELDIR_BLOCK_BYTES / (dim * sizeof(float));
    return n ? n : 1;
}

uint64_t drps_modelrows_memory(uint32_t dim)
{
    return GROUP * drps_modeldir_block_rows(dim) * dim * sizeof(float);
}

int drps_modelrows_open(const struct drps_kv_ops *kv, const char *path, uint64_t rows, uint32_t dim,
                        uint64_t memory_bytes, struct drps_modelrows **w_out, struct drps_err *err)
{
    *w_out = NULL;
    struct drps_modelrows *w = calloc(1, sizeof(*w));
    if (!w) return drps_err_set(err, -ENOMEM, "no memory to write %s", path);
    w->ops = kv;
    w->rows = rows;
    w->param_bytes = dim * sizeof(float);
    w->block_rows = drps_modeldir_block_rows(dim);
    w->content = drps_summer_new();
    w->group = drps_array_new(GROUP * w->block_rows, w->param_bytes);
    int rc = w->group && w->content ? 0 : drps_err_set(err, -ENOMEM, "no memory to write %s", path);
    const struct drps_kv_options options = {.memory_bytes = memory_bytes,
                                            .value_bytes = w->block_rows * w->param_bytes,
                                            .create = 1,
                                            .bulk = 1};
    if (rc == 0) rc = kv->open(path, &options, &w->kv, err);
    if (rc < 0) {
        drps_modelrows_close(w);
        return rc;
    }
    *w_out = w;
    return 0;
}

void drps_modelrows_close(struct drps_modelrows *w)
{
    if (!w) return;
    w->ops->close(w->kv);
    drps_summer_free(w->content);
    free(w->group);
    free(w);
}

static int write_group(struct drps_modelrows *w, struct drps_err *err)
{
    uint32_t keys[GROUP];
    const void *values[GROUP];
    size_t bytes[GROUP];
    const size_t n = (w->used + w->block_rows - 1) / w->block_rows;
    const uint64_t first = (w->next - w->used) / w->block_rows;

    for (size_t i = 0; i < n; i++) {
        const size_t left = w->used - i * w->block_rows;
        keys[i] = (uint32_t)(first + i);
        values[i] = w->group + i * w->block_rows * w->param_bytes;
        bytes[i] = (left < w->block_rows ? left : w->block_rows) * w->param_bytes;
    }
    drps_summer_add(w->content, w->group, w->used * w->param_bytes);
    w->used = 0;
    return n ? w->ops->put_many(w->kv, keys, n, values, bytes, err) : 0;
}

int drps_modelrows_add(void *writer, uint64_t first, size_t n, const void *params,
                       struct drps_err *err)
{
    struct drps_modelrows *w = writer;
    const char *from = params;
    const size_t group = GROUP * w->block_rows;
    if (first != w->next || n > w->rows - first)
        return drps_err_set(err, -EINVAL, "rows %llu to %llu came where row %llu of %llu was next",
                            (unsigned long long)first, (unsigned long long)(first + n),
                            (unsigned long long)w->next, (unsigned long long)w->rows);
    while (n) {
        const size_t some = n < group - w->used ? n : group - w->used;
        memcpy(w->group + w->used * w->param_bytes, from, some * w->param_bytes);
        w->used += some;
        w->next += some;
        from += some * w->param_bytes;
        n -= some;
        int rc = w->used == group ? write_group(w, err) : 0;
        if (rc < 0) return rc;
    }
    return 0;
}

int drps_modelrows_finish(struct drps_modelrows *w, uint64_t *content_out, struct drps_err *err)
{
    *content_out = 0;
    if (w->next != w->rows)
        return drps_err_set(err, -EINVAL, "%llu rows of %llu came", (unsigned long long)w->next,
                            (unsigned long long)w->rows);
    int rc = write_group(w, err);
    if (rc == 0) rc = w->ops->sync(w->kv, err);
    *content_out = drps_summer_value(w->content);
    return rc;
}
