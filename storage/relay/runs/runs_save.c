/* Saving runs: which chunks of the file each of them has, and how far it was taken. The chunks stay
 * where they are; runs_saved.h has the records. */
#include <errno.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "storage/relay/runs/runs_internal.h"
#include "storage/relay/runs/runs_saved.h"

/* However runs go on, they have file_chunks at most, or the file grows; so with as many besides
 * those that are pinned there is a free one. */
static int make_room(struct drps_runs *r, struct drps_err *err)
{
    return drps_runs_grow(r, r->config.file_chunks + drps_chunk_map_kept(&r->map), err);
}

/* A failure of a request, now or before, comes out. */
int drps_runs_save_begin(struct drps_runs *r, struct drps_err *err)
{
    int rc = drps_runs_stop_merging(r, err);
    if (rc == 0) rc = drps_runs_bring(r, DRPS_RUNS_NEVER - 1, err);
    if (rc == 0) rc = drps_runs_await_all(r, err);
    if (rc == 0) rc = make_room(r, err);
    return rc == 0 ? drps_aio_sync(r->aio, err) : rc;
}

static int add(struct drps_recwriter *w, const void *data, size_t bytes, struct drps_err *err)
{
    const struct drps_piece piece = {.data = data, .bytes = bytes};
    return drps_recwriter_add(w, &piece, 1, err);
}

static uint32_t chunks_of(const struct drps_runs *r, const struct drps_run *run)
{
    uint32_t n = 0;
    for (uint32_t c = run->chunk; c != DRPS_NO_CHUNK; c = r->map.next[c])
        n++;
    return n;
}

static int save_sizes(const struct drps_runs *r, struct drps_recwriter *w, struct drps_err *err)
{
    struct drps_runs_sizes z = {.row_bytes = r->config.row_bytes,
                                .chunk_bytes = r->config.chunk_bytes,
                                .file_chunks = r->config.file_chunks,
                                .runs = r->config.runs,
                                .chunks = r->map.n,
                                .cursor = r->map.cursor,
                                .saved = r->n};
    for (uint32_t i = 0; i < r->n; i++)
        z.listed += chunks_of(r, &r->runs[i]);
    return add(w, &z, sizeof(z), err);
}

static int save_pinned(const struct drps_runs *r, struct drps_recwriter *w, struct drps_err *err)
{
    uint64_t *bits = calloc(1, drps_runs_bits_bytes(r->map.n));
    if (!bits) return drps_err_set(err, -ENOMEM, "no memory to save the runs of rows");
    for (uint64_t i = 0; i < r->map.n; i++)
        if (drps_chunk_map_is_pinned(&r->map, (uint32_t)i)) bits[i / 64] |= UINT64_C(1) << i % 64;
    int rc = add(w, bits, drps_runs_bits_bytes(r->map.n), err);
    free(bits);
    return rc;
}

static int save_runs(const struct drps_runs *r, struct drps_recwriter *w, struct drps_err *err)
{
    struct drps_runs_saved_run *entries = calloc(r->n, sizeof(*entries));
    int rc = entries ? 0 : drps_err_set(err, -ENOMEM, "no memory to save the runs of rows");
    for (uint32_t i = 0; i < r->n && rc == 0; i++) {
        const struct drps_run *run = &r->runs[i];
        entries[i] = (struct drps_runs_saved_run){.window = run->window,
                                                  .left = run->left,
                                                  .at = run->at,
                                                  .level = run->level,
                                                  .chunks = chunks_of(r, run)};
    }
    for (uint32_t i = 0; i < r->n && rc == 0; i += DRPS_RUNS_ENTRIES)
        rc = add(w, entries + i, drps_runs_entries(r->n - i) * sizeof(*entries), err);
    free(entries);
    return rc;
}

static int save_chunks(const struct drps_runs *r, struct drps_recwriter *w, struct drps_err *err)
{
    const struct drps_chunk_map *m = &r->map;
    struct drps_runs_saved_chunk *entries = drps_array_new(DRPS_RUNS_ENTRIES, sizeof(*entries));
    int rc = entries ? 0 : drps_err_set(err, -ENOMEM, "no memory to save the runs of rows");
    size_t n = 0;
    for (uint32_t i = 0; i < r->n; i++)
        for (uint32_t c = r->runs[i].chunk; c != DRPS_NO_CHUNK && rc == 0; c = m->next[c]) {
            entries[n++] = (struct drps_runs_saved_chunk){
                .sum = m->sums[c], .need = m->needs[c], .chunk = c, .bytes = m->bytes[c]};
            if (n < DRPS_RUNS_ENTRIES) continue;
            rc = add(w, entries, n * sizeof(*entries), err);
            n = 0;
        }
    if (rc == 0 && n) rc = add(w, entries, n * sizeof(*entries), err);
    free(entries);
    return rc;
}

int drps_runs_save(struct drps_runs *r, struct drps_recwriter *w, struct drps_err *err)
{
    int rc = save_sizes(r, w, err);
    if (rc == 0) rc = save_pinned(r, w, err);
    if (rc == 0) rc = save_runs(r, w, err);
    return rc == 0 ? save_chunks(r, w, err) : rc;
}

int drps_runs_pin(struct drps_runs *r, struct drps_err *err)
{
    unsigned save = 0;
    while (save < DRPS_CHUNK_SAVES && r->saves >> save & 1)
        save++;
    if (save == DRPS_CHUNK_SAVES)
        return drps_err_set(err, -EINVAL, "%d saves are there: let go of one", DRPS_CHUNK_SAVES);
    drps_chunk_map_pin_taken(&r->map, save);
    r->saves |= (uint8_t)(1u << save);
    return (int)save;
}

void drps_runs_unpin(struct drps_runs *r, unsigned save)
{
    drps_chunk_map_unpin(&r->map, save);
    r->saves &= (uint8_t) ~(1u << save);
}
