#include "storage/relay/runs/runs_model.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/drps_alloc.h"
#include "support/lists.h"

struct drps_runs_config model_config(struct scratch *scratch)
{
    return (struct drps_runs_config){.io = drps_io_os(),
                                     .path = scratch_path(scratch, "runs"),
                                     .row_bytes = 72,
                                     .chunk_bytes = 4096,
                                     .file_chunks = 60,
                                     .runs = 12,
                                     .spare = 3,
                                     .run_bytes = 3000,
                                     .ahead = 5,
                                     .behind = 9,
                                     .write_chunks = 4};
}

void model_begin(struct model *m, struct scratch *scratch, uint64_t seed,
                 const struct drps_runs_config *c)
{
    struct drps_err err = DRPS_ERR_INIT;
    *m = (struct model){.config = *c,
                        .scratch = scratch,
                        .rng = {.seed = seed},
                        .window = 1,
                        .delay = 20,
                        .reach = 60,
                        .run_rows = 300};
    m->rows = must(malloc(MODEL_ROWS * c->row_bytes));
    assert_ok(drps_runs_open(c, &m->runs, &err), &err);
}

void model_end(struct model *m)
{
    drps_runs_close(m->runs);
    for (size_t i = 0; i < MODEL_WINDOWS; i++) {
        free(m->queue[i].rows);
        free(m->others[i].rows);
    }
    free(m->rows);
}

/* ---- Rows ---- */

static char *row_at(const struct model *m, uint32_t frame)
{
    return m->rows + frame * m->config.row_bytes;
}

static void make_row(struct model *m, uint32_t frame)
{
    const uint64_t number = ++m->made;
    for (size_t i = 0; i < m->config.row_bytes; i++)
        row_at(m, frame)[i] = (char)(number >> i % 8 * 8);
}

static void check_row(const struct model *m, uint32_t frame, uint64_t number)
{
    for (size_t i = 0; i < m->config.row_bytes; i++)
        if (row_at(m, frame)[i] != (char)(number >> i % 8 * 8))
            fail_msg("byte %zu of row %llu, window %llu, seed %llu", i, (unsigned long long)number,
                     (unsigned long long)m->window, (unsigned long long)m->rng.seed);
}

static void note(struct model_list *list, uint64_t number)
{
    assert_int_equal(drps_array_reserve(&list->rows, &list->cap, list->n + 1, sizeof(number)), 0);
    list->rows[list->n++] = number;
}

/* So many frames, each once, in any order. */
static void draw_frames(struct model *m, uint32_t *frames, size_t n)
{
    const uint32_t from = (uint32_t)random_below(&m->rng, MODEL_ROWS);
    for (uint32_t i = 0; i < n; i++)
        frames[i] = (from + i * 7) % MODEL_ROWS; /* 7 does not divide 200 */
}

static size_t make_rows(struct model *m, uint32_t *frames, size_t most, struct model_list *list)
{
    const size_t n = 1 + (size_t)random_below(&m->rng, most);
    draw_frames(m, frames, n);
    for (size_t i = 0; i < n; i++) {
        make_row(m, frames[i]);
        note(list, m->made);
    }
    return n;
}

/* ---- Writing ---- */

int model_run(struct model *m, struct drps_err *err)
{
    uint32_t frames[MODEL_ROWS];
    size_t rows = (size_t)random_below(&m->rng, 2 * m->run_rows + 1);
    int rc = drps_runs_begin(m->runs, err);
    for (uint64_t w = m->window + 1; w < m->window + m->reach && rows && rc == 0; w++) {
        if (random_below(&m->rng, 4) == 0 || w >= MODEL_WINDOWS) continue;
        const size_t most = random_below(&m->rng, 8) ? 12 : MODEL_ROWS;
        const size_t n = make_rows(m, frames, most, &m->others[w]);
        rc = drps_runs_add(m->runs, w, m->rows, frames, n, err);
        rows = rows > n ? rows - n : 0;
    }
    return rc == 0 ? drps_runs_end(m->runs, err) : rc;
}

int model_queue(struct model *m, struct drps_err *err)
{
    uint32_t frames[MODEL_ROWS];
    const uint64_t w = m->window + m->delay;
    if (!m->delay || w >= MODEL_WINDOWS) return 0;
    const size_t n = make_rows(m, frames, 1 + (size_t)random_below(&m->rng, 60), &m->queue[w]);
    return drps_runs_queue(m->runs, w, m->rows, frames, n, err);
}

/* ---- Taking ---- */

static uint64_t nth_row(const struct model *m, uint64_t w, size_t i)
{
    return i < m->queue[w].n ? m->queue[w].rows[i] : m->others[w].rows[i - m->queue[w].n];
}

/* All rows of a window, some at a time. */
static int take_window(struct model *m, uint64_t w, int looks, struct drps_err *err)
{
    uint32_t frames[MODEL_ROWS];
    const size_t n = m->queue[w].n + m->others[w].n;
    int rc = 0;
    for (size_t at = w == m->window ? m->done : 0, now; at < n && rc == 0; at += now) {
        now = 1 + (size_t)random_below(&m->rng, MODEL_ROWS);
        if (now > n - at) now = n - at;
        draw_frames(m, frames, now);
        rc = drps_runs_take(m->runs, w, m->rows, frames, now, err);
        for (size_t i = 0; i < now && rc == 0; i++)
            check_row(m, frames[i], nth_row(m, w, at + i));
        if (rc == 0 && !looks && random_below(&m->rng, 30) == 0) rc = model_run(m, err);
        if (rc == 0 && !looks && random_below(&m->rng, 4) == 0)
            rc = drps_runs_merge_some(m->runs, err);
    }
    return rc == 0 ? drps_runs_taken(m->runs, w, err) : rc;
}

/* Buffers are counted as those that runs have. */
static void check_buffers(const struct drps_runs *r)
{
    uint32_t extra[2] = {0};
    for (uint32_t i = 0; i < r->n; i++) {
        const int merged = i > r->merging.at && i <= r->merging.at + r->merging.n;
        uint32_t n = 0;
        for (int32_t b = r->runs[i].first; b != DRPS_RUNS_NONE; b = r->reads[b].next)
            n++;
        assert_int_equal(r->runs[i].extra, n ? n - 1 : 0);
        extra[merged] += r->runs[i].extra;
    }
    assert_memory_equal(r->extra, extra, sizeof(extra));
}

int model_take(struct model *m, struct drps_err *err)
{
    int rc = random_below(&m->rng, 4) ? drps_runs_prefetch(m->runs, m->window, err) : 0;
    if (rc == 0) rc = take_window(m, m->window, 0, err);
    if (rc < 0) return rc;
    m->window++;
    m->done = 0;
    check_buffers(m->runs);
    return random_below(&m->rng, 4) ? drps_runs_merge_some(m->runs, err) : 0;
}

/* The borrower writes to all that is lent, of which there is `least` at least. */
static void use_lent(const struct model *m, size_t least)
{
    const struct drps_runs_lent lent = drps_runs_lend(m->runs);
    assert_true(lent.bytes >= least);
    memset(lent.at, 0xa5, lent.bytes);
}

int model_look(struct model *m, struct drps_err *err)
{
    const struct drps_runs_config *c = &m->config;
    const uint64_t n = random_below(&m->rng, 2) ? m->reach + m->delay : 7;
    int rc = drps_runs_look(m->runs, err);
    for (uint64_t w = m->window; w < m->window + n && w < MODEL_WINDOWS && rc == 0; w++) {
        rc = random_below(&m->rng, 2) ? drps_runs_prefetch(m->runs, w, err) : 0;
        if (rc == 0 && !c->looking) /* what was read ahead lies beside it */
            use_lent(m, (c->behind + drps_runs_ahead_lent(c->ahead)) * c->chunk_bytes);
        if (rc == 0) rc = take_window(m, w, 1, err);
    }
    const int end = drps_runs_looked(m->runs, err);
    if (rc < 0 || end < 0) return rc < 0 ? rc : end;
    if (!c->looking) use_lent(m, (c->behind + c->runs + c->ahead) * c->chunk_bytes);
    return 0;
}

/* ---- Saving ---- */

static int write_records(struct model *m, const char *dir, struct drps_err *err)
{
    char *path = must(drps_saved_records_path(dir));
    struct drps_recwriter *w = NULL;
    int rc = drps_recwriter_open(drps_io_os(), path, DRPS_KIND_SAVED_RELAY, &w, err);
    if (rc == 0) rc = drps_runs_save(m->runs, w, err);
    if (rc == 0) rc = drps_recwriter_finish(w, err);
    drps_recwriter_close(w);
    free(path);
    return rc;
}

int model_save(struct model *m, const char **dir_out, struct drps_err *err)
{
    char name[32];
    (void)snprintf(name, sizeof(name), "save%u", m->saves++);
    *dir_out = scratch_path(m->scratch, name);
    int rc = drps_runs_save_begin(m->runs, err);
    if (rc == 0) rc = mkdir(*dir_out, 0700) < 0 ? -errno : 0;
    if (rc == 0) rc = write_records(m, *dir_out, err);
    if (rc < 0) return rc;
    char *file = must(drps_saved_runs_path(*dir_out));
    assert_int_equal(link(m->config.path, file), 0);
    free(file);
    rc = drps_runs_pin(m->runs, err);
    return rc < 0 ? rc : drps_runs_verify_saved(drps_io_os(), *dir_out, 0, err);
}

int model_reopen(struct model *m, const char *dir, int looking, struct drps_err *err)
{
    struct drps_saved saved;
    drps_runs_close(m->runs);
    m->runs = NULL;
    int rc = drps_saved_open(&saved, drps_io_os(), dir, err);
    m->config.saved = &saved;
    m->config.looking = looking;
    if (rc == 0) rc = drps_runs_open(&m->config, &m->runs, err);
    if (rc == 0) assert_int_equal(saved.at, drps_recfile_count(saved.file));
    m->config.saved = NULL;
    drps_saved_close(&saved);
    m->pinned = !looking;
    return rc;
}

/* Save and go on; sometimes from the save itself. */
static int save_some(struct model *m, struct drps_err *err)
{
    const char *dir;
    if (m->pinned) {
        drps_runs_unpin(m->runs, DRPS_RUNS_RESTORED);
        drps_runs_unpin(m->runs, DRPS_RUNS_OLDER);
        m->pinned = 0;
    }
    int rc = model_save(m, &dir, err);
    if (rc < 0) return rc;
    if (random_below(&m->rng, 2)) return model_reopen(m, dir, 0, err);
    unsigned save = 0;
    while (!(m->runs->saves >> save & 1))
        save++;
    drps_runs_unpin(m->runs, save);
    return 0;
}

int model_windows(struct model *m, uint64_t n, struct drps_err *err)
{
    int rc = 0;
    for (const uint64_t end = m->window + n; m->window < end && rc == 0;) {
        for (uint64_t k = random_below(&m->rng, 3); k > 0 && rc == 0; k--)
            rc = model_run(m, err);
        if (rc == 0) rc = model_queue(m, err);
        if (rc == 0 && random_below(&m->rng, 40) == 0) rc = model_look(m, err);
        if (rc == 0 && random_below(&m->rng, 80) == 0) rc = save_some(m, err);
        if (rc == 0) rc = model_take(m, err);
    }
    return rc;
}
