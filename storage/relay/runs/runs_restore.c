/* Restoring runs from the records of runs_saved.h, which are hostile until checked. The chunks
 * themselves are compared with their checksums when they are read. */
#include <errno.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "storage/relay/runs/runs_internal.h"
#include "storage/relay/runs/runs_saved.h"

static int read_sizes(const struct drps_runs_config *c, struct drps_runs_sizes *z,
                      struct drps_err *err)
{
    int rc = drps_saved_read(c->saved, z, sizeof(*z), "sizes of runs", err);
    if (rc < 0) return rc;
    if (z->row_bytes != c->row_bytes || z->chunk_bytes != c->chunk_bytes ||
        z->file_chunks != c->file_chunks || z->runs != c->runs)
        return drps_err_set(err, DRPS_E_CONFIG, "%s: runs of another number or size were saved",
                            c->saved->path);
    if (z->chunks < c->file_chunks || z->chunks >= DRPS_NO_CHUNK ||
        z->chunks > INT64_MAX / c->chunk_bytes || z->cursor >= z->chunks || !z->saved ||
        z->saved > c->runs + UINT64_C(1) || z->listed > z->chunks)
        return drps_saved_wrong(c->saved, "sizes of runs", err);
    return 0;
}

int drps_runs_restore_size(const struct drps_runs_config *c, uint64_t *chunks_out,
                           struct drps_err *err)
{
    struct drps_runs_sizes z;
    int rc = read_sizes(c, &z, err);
    if (rc < 0) return rc;
    *chunks_out = z.chunks;
    c->saved->at--; /* drps_runs_restore() reads it, too */
    return 0;
}

static int restore_pinned(struct drps_runs *r, struct drps_err *err)
{
    const size_t bytes = drps_runs_bits_bytes(r->map.n);
    uint64_t *bits = malloc(bytes);
    if (!bits) return drps_err_set(err, -ENOMEM, "no memory to restore the runs of rows");
    int rc = drps_saved_read(r->config.saved, bits, bytes, "pinned chunks", err);
    for (uint64_t i = 0; i < r->map.n && rc == 0 && !r->config.looking; i++)
        if (bits[i / 64] >> i % 64 & 1) drps_chunk_map_pin(&r->map, (uint32_t)i, DRPS_RUNS_OLDER);
    free(bits);
    return rc;
}

/* ---- Chunks: records of entries, read one after another ---- */

struct chunks {
    struct drps_runs_saved_chunk *entries; /* own: [DRPS_RUNS_ENTRIES] of a record */
    size_t at, n;                          /* of them */
    uint64_t left;                         /* entries in records to come */
};

static int next_chunk(const struct drps_runs *r, struct chunks *c,
                      const struct drps_runs_saved_chunk **e_out, struct drps_err *err)
{
    int rc = 0;
    if (c->at == c->n) {
        c->n = drps_runs_entries(c->left);
        c->at = 0;
        if (!c->n) return drps_saved_wrong(r->config.saved, "chunks of runs", err);
        rc = drps_saved_read(r->config.saved, c->entries, c->n * sizeof(*c->entries),
                             "chunks of runs", err);
        c->left -= c->n;
    }
    *e_out = &c->entries[c->at++];
    return rc;
}

/* The next entry is of the run's next chunk; windows of a run never fall, and no chunk comes
 * twice. */
static int restore_chunk(struct drps_runs *r, struct drps_run *run, struct chunks *c,
                         struct drps_err *err)
{
    const struct drps_runs_saved_chunk *e = NULL;
    int rc = next_chunk(r, c, &e, err);
    if (rc < 0) return rc;
    const uint32_t last = run->list.last;
    if (e->chunk >= r->map.n || drps_chunk_map_is_taken(&r->map, e->chunk) || !e->bytes ||
        e->bytes > r->config.chunk_bytes || e->need == DRPS_RUNS_NEVER ||
        (last != DRPS_NO_CHUNK && e->need < r->map.needs[last]))
        return drps_saved_wrong(r->config.saved, "chunks of runs", err);
    drps_chunk_map_append(&r->map, &run->list, e->chunk, e->bytes, e->sum, e->need);
    drps_chunk_map_written(&r->map, e->chunk);
    if (!r->config.looking) drps_chunk_map_pin(&r->map, e->chunk, DRPS_RUNS_RESTORED);
    run->bytes += e->bytes;
    return 0;
}

/* ---- Runs ---- */

/* A run stands at the begin of its first chunk, or at a row of a section. */
static int stands_well(const struct drps_runs *r, const struct drps_run *run)
{
    const uint32_t first = run->list.first;
    if (first == DRPS_NO_CHUNK) return run == r->runs && !run->left && !run->at;
    const uint64_t need = r->map.needs[first];
    const int window = run->at ? run->window >= need : run->window == need;
    return run->at < r->map.bytes[first] && window && run->window != DRPS_RUNS_NEVER &&
           (run->left || !run->at) && run->left <= (run->bytes - run->at) / r->config.row_bytes;
}

static int restore_run(struct drps_runs *r, uint32_t i, const struct drps_runs_saved_run *e,
                       struct chunks *c, struct drps_err *err)
{
    struct drps_run *run = &r->runs[i];
    int rc = 0;
    drps_run_init(run);
    for (uint32_t k = 0; k < e->chunks && rc == 0; k++)
        rc = restore_chunk(r, run, c, err);
    if (rc < 0) return rc;
    run->chunk = run->list.first;
    run->window = e->window;
    run->left = e->left;
    run->at = e->at;
    run->level = e->level;
    if (!stands_well(r, run) || e->level > DRPS_RUNS_LEVELS_MOST ||
        (i > 1 && e->level > r->runs[i - 1].level))
        return drps_saved_wrong(r->config.saved, "runs", err);
    drps_runs_note(r, i);
    r->n = i + 1;
    return 0;
}

static int restore_runs(struct drps_runs *r, const struct drps_runs_saved_run *entries, size_t n,
                        uint64_t listed, struct drps_err *err)
{
    struct chunks c = {.left = listed};
    c.entries = drps_array_new(DRPS_RUNS_ENTRIES, sizeof(*c.entries));
    int rc = c.entries ? 0 : drps_err_set(err, -ENOMEM, "no memory to restore the runs of rows");
    for (uint32_t i = 0; i < n && rc == 0; i++)
        rc = restore_run(r, i, &entries[i], &c, err);
    if (rc == 0 && (c.left || c.at < c.n))
        rc = drps_saved_wrong(r->config.saved, "chunks of runs", err);
    free(c.entries);
    return rc;
}

static int read_runs(struct drps_runs *r, struct drps_runs_saved_run *entries, size_t n,
                     struct drps_err *err)
{
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i += DRPS_RUNS_ENTRIES)
        rc = drps_saved_read(r->config.saved, entries + i,
                             drps_runs_entries(n - i) * sizeof(*entries), "runs", err);
    return rc;
}

int drps_runs_restore(struct drps_runs *r, struct drps_err *err)
{
    struct drps_runs_sizes z;
    int rc = read_sizes(&r->config, &z, err);
    if (rc < 0) return rc;
    struct drps_runs_saved_run *entries = drps_array_new((size_t)z.saved, sizeof(*entries));
    if (!entries) return drps_err_set(err, -ENOMEM, "no memory to restore the runs of rows");
    rc = restore_pinned(r, err);
    if (rc == 0) rc = read_runs(r, entries, (size_t)z.saved, err);
    if (rc == 0) rc = restore_runs(r, entries, (size_t)z.saved, z.listed, err);
    if (rc == 0) r->map.cursor = z.cursor;
    free(entries);
    return rc;
}
