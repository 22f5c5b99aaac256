/*
 * Numbers that come in any order and are taken in turn (drps_scatter.h): in an array, or through
 * the external sort.
 */
#include "index/dictionary/drps_scatter.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/drps_alloc.h"

int drps_scatter_open(const struct drps_io *io, const char *dir, const char *name, uint64_t n,
                      uint64_t memory_bytes, struct scatter *s, struct drps_err *err)
{
    *s = (struct scatter){.n = n};
    if (n > memory_bytes / sizeof(*s->array))
        return drps_extsort_open(io, dir, name, memory_bytes, &s->sort, err);
    s->array = drps_pages_new(n * sizeof(*s->array));
    if (!s->array) return drps_err_set(err, -ENOMEM, "no memory for %" PRIu64 " numbers", n);
    memset(s->array, 0xff, n * sizeof(*s->array)); /* SCATTER_NONE */
    return 0;
}

void drps_scatter_close(struct scatter *s)
{
    drps_pages_free(s->array, s->n * sizeof(*s->array));
    drps_extsort_close(s->sort);
    *s = (struct scatter){0};
}

int drps_scatter_put(struct scatter *s, uint64_t i, uint32_t value, struct drps_err *err)
{
    const struct drps_sort_record r = {.hi = i, .a = value};
    if (!s->array) return drps_extsort_add(s->sort, &r, err);
    s->array[i] = value;
    return 0;
}

int drps_scatter_finish(struct scatter *s, struct drps_err *err)
{
    int rc = s->array ? 0 : drps_extsort_finish(s->sort, err);
    if (rc == 0 && !s->array) rc = drps_extsort_next(s->sort, &s->next, err);
    return rc < 0 ? rc : 0;
}

int drps_scatter_next(struct scatter *s, uint32_t *value_out, struct drps_err *err)
{
    const uint64_t i = s->taken++;
    *value_out = SCATTER_NONE;
    if (s->array) {
        *value_out = s->array[i];
        return 0;
    }
    if (!s->next || s->next->hi != i) return 0;
    *value_out = s->next->a;
    int rc = drps_extsort_next(s->sort, &s->next, err);
    return rc < 0 ? rc : 0;
}
