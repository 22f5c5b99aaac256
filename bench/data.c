/* Samples in memory (data.h). */
#include "bench/data.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "base/drps_rng.h"
#include "index/reader/drps_reader.h"

void *must(void *p)
{
    if (p) return p;
    fprintf(stderr, "bench: out of memory\n");
    exit(1);
}

void ok(int rc, const struct drps_err *err)
{
    if (rc >= 0) return;
    fprintf(stderr, "bench: %s\n", err->text);
    exit(1);
}

/* Where a key is, or belongs. */
static size_t slot_of(const struct data *d, uint64_t key)
{
    size_t at = drps_mix64(key) >> (64 - d->bits);
    while (d->ids[at] && d->keys[at] != key)
        at = (at + 1) & (((size_t)1 << d->bits) - 1);
    return at;
}

static void grow(struct data *d)
{
    struct data old = *d;
    d->bits = old.bits ? old.bits + 1 : 16;
    d->keys = must(calloc((size_t)1 << d->bits, sizeof(*d->keys)));
    d->ids = must(calloc((size_t)1 << d->bits, sizeof(*d->ids)));
    for (size_t i = 0; old.bits && i < (size_t)1 << old.bits; i++) {
        if (!old.ids[i]) continue;
        size_t at = slot_of(d, old.keys[i]);
        d->keys[at] = old.keys[i];
        d->ids[at] = old.ids[i];
    }
    free(old.keys);
    free(old.ids);
}

static uint32_t id_of(struct data *d, uint64_t key)
{
    if (!d->bits || d->features_n >= (uint32_t)1 << (d->bits - 1)) grow(d);
    size_t at = slot_of(d, key);
    if (!d->ids[at]) {
        d->keys[at] = key;
        d->ids[at] = ++d->features_n;
    }
    return d->ids[at] - 1;
}

void data_add(struct data *d, const uint64_t *keys, size_t n)
{
    struct drps_err err = DRPS_ERR_INIT;
    size_t at = d->n ? d->starts[d->n] : 0;
    ok(drps_array_reserve(&d->starts, &d->starts_cap, d->n + 2, sizeof(*d->starts)), &err);
    ok(drps_array_reserve(&d->features, &d->entries_cap, at + n, sizeof(*d->features)), &err);
    d->starts[0] = 0;
    for (size_t i = 0; i < n; i++)
        d->features[at + i] = id_of(d, keys[i]);
    d->starts[++d->n] = at + n;
}

void data_read(struct data *d, const char *format, const char *path)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_reader_options o = {.format = format};
    struct drps_reader *r;
    struct drps_samples s = {0};
    int rc;
    ok(drps_reader_open(drps_io_os(), &path, 1, &o, &r, &err), &err);
    while ((rc = drps_reader_next(r, &s, &err)) > 0)
        for (size_t i = 0; i < s.n; i++)
            data_add(d, s.keys + s.starts[i], s.starts[i + 1] - s.starts[i]);
    ok(rc, &err);
    drps_samples_free(&s);
    drps_reader_close(r);
}

void data_free(struct data *d)
{
    free(d->starts);
    free(d->features);
    free(d->keys);
    free(d->ids);
}

int data_walk_rows(void *ctx, drps_row_visit visit, void *visit_ctx, struct drps_err *err)
{
    const struct drps_units *rows = ctx;
    int rc = 0;
    for (size_t r = 0; r < rows->n && rc == 0; r++) {
        const size_t n = rows->starts[r + 1] - rows->starts[r];
        if (n) rc = visit(visit_ctx, (uint32_t)r, rows->touches + rows->starts[r], n, err);
    }
    return rc;
}
