/*
 * What a relay store would send in an epoch, before it is run: at several sizes of memory, for
 * which windows are cut anew, as drps-train cuts them.
 *
 * Which rows leave its memory follows from how many leave each window for which other
 * (storage/relay/drps_moves.h). These are counted for all sizes in one pass over the steps.
 * The windows of all sizes together cut the epoch into *segments*, so that a row's last segment
 * says in which window of each size it was last; that is all the memory a row takes. Of a large
 * plan's rows every second, fourth ... is followed, and counts are scaled up: neighbours are used
 * alike. How much room windows leave, and how many rows leave them, is counted of all rows, by the
 * cutters.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "index/plan/drps_window.h"

#include "base/drps_alloc.h"
#include "index/plan/drps_batch.h"
#include "index/plan/drps_steps.h"
#include "index/windows/drps_cut.h"
#include "storage/relay/drps_moves.h"
#include "storage/relay/drps_relay.h"

enum {
    USES_MOST = 2 << 20,  /* of rows in an epoch, that are followed */
    ROWS_LEAST = 1 << 16, /* that are followed whatever the memory */
    STAYING_DISTANCE = 2, /* a row that both neighbours of a window touch is in it, too: it stays */
};

/* The epoch between two borders of windows, of whatever size. */
struct segment {
    uint64_t start;                            /* its first step */
    uint32_t window[DRPS_WINDOW_MEASURE_MOST]; /* of each size */
};

struct measuring {
    const struct drps_window_options *options;
    size_t n; /* sizes */
    struct cut cut[DRPS_WINDOW_MEASURE_MOST];
    struct drps_moves moves[DRPS_WINDOW_MEASURE_MOST];

    struct segment *segments; /* own: [segments_n] */
    size_t segments_n;

    unsigned shift;         /* rows that are multiples of 1 << shift are followed */
    size_t followed;        /* so many */
    uint32_t *first, *last; /* own: [followed] segments that use it first, and last so far; NONE */
};

#define NONE UINT32_MAX

/* ---- Segments ---- */

static int by_start(const void *a, const void *b)
{
    uint64_t x, y;
    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    return x < y ? -1 : x > y;
}

/* All starts, increasing, each once; returns how many. */
static size_t join_starts(const struct measuring *m, uint64_t *starts_out)
{
    size_t n = 0, distinct = 0;
    for (size_t i = 0; i < m->n; i++) {
        if (m->cut[i].n)
            memcpy(starts_out + n, m->cut[i].starts, m->cut[i].n * sizeof(*starts_out));
        n += m->cut[i].n;
    }
    qsort(starts_out, n, sizeof(*starts_out), by_start);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || starts_out[i] != starts_out[distinct - 1])
            starts_out[distinct++] = starts_out[i];
    return distinct;
}

static int make_segments(struct measuring *m, struct drps_err *err)
{
    size_t windows = 0;
    for (size_t i = 0; i < m->n; i++)
        windows += m->cut[i].n;
    uint64_t *starts = drps_array_new(windows + 1, sizeof(*starts));
    m->segments_n = starts ? join_starts(m, starts) : 0;
    m->segments = calloc(m->segments_n + 1, sizeof(*m->segments)); /* no window fits: one */
    if (!starts || !m->segments) {
        free(starts);
        return drps_err_set(err, -ENOMEM, "no memory for %zu windows", windows);
    }
    for (size_t g = 0; g < m->segments_n; g++) {
        struct segment *segment = &m->segments[g];
        if (g) *segment = segment[-1];
        segment->start = starts[g];
        for (size_t i = 0; i < m->n; i++) {
            const struct cut *cut = &m->cut[i];
            const uint32_t next = segment->window[i] + 1;
            if (next < cut->n && cut->starts[next] == starts[g]) segment->window[i] = next;
        }
    }
    free(starts);
    return 0;
}

/* ---- Counting ---- */

/* A quarter of the memory for rows, half for counts; the rest is for reading. */
static int counting_init(struct measuring *m, const struct cut_extent *x, struct drps_err *err)
{
    const struct drps_window_options *o = m->options;
    const uint64_t most_uses = o->curve_uses ? o->curve_uses : USES_MOST;
    const uint64_t most_bytes = o->memory_bytes / 4;
    const uint64_t row_bytes = sizeof(*m->first) + sizeof(*m->last);
    while (m->shift < 31 && x->uses >> m->shift > most_uses)
        m->shift++;
    while (m->shift < 31 && o->rows >> m->shift > ROWS_LEAST &&
           (o->rows >> m->shift) * row_bytes > most_bytes)
        m->shift++;
    m->followed = (size_t)(o->rows >> m->shift) + 1;
    m->first = drps_pages_new(m->followed * sizeof(*m->first));
    m->last = drps_pages_new(m->followed * sizeof(*m->last));
    int rc = m->first && m->last ? 0 : -ENOMEM;
    for (size_t i = 0; i < m->n && rc == 0; i++)
        if (m->cut[i].n)
            rc = drps_moves_init(&m->moves[i], (uint32_t)m->cut[i].n, o->memory_bytes / 2 / m->n);
    if (rc < 0) return drps_err_set(err, rc, "no memory to count the uses of rows");
    memset(m->first, 0xff, m->followed * sizeof(*m->first)); /* NONE */
    memset(m->last, 0xff, m->followed * sizeof(*m->last));
    return make_segments(m, err);
}

/* A row is used in segment `from`, and next in `to`: in the next epoch, if `wraps`. */
static void count_use_distance(const struct measuring *m, const struct segment *from,
                               const struct segment *to, int wraps)
{
    for (size_t i = 0; i < m->n; i++) {
        const uint32_t more = wraps ? (uint32_t)m->cut[i].n : 0;
        const uint32_t distance = to->window[i] + more - from->window[i];
        if (distance > STAYING_DISTANCE && m->cut[i].n)
            ++*drps_moves_count(&m->moves[i], from->window[i], distance);
    }
}

static void count_step(struct measuring *m, uint32_t segment, const uint32_t *rows, size_t n)
{
    const uint32_t rest = (1u << m->shift) - 1;
    for (size_t i = 0; i < n; i++) {
        if (rows[i] & rest) continue;
        const size_t row = rows[i] >> m->shift;
        const uint32_t last = m->last[row];
        if (last == segment) continue;
        m->last[row] = segment;
        if (last == NONE)
            m->first[row] = segment;
        else
            count_use_distance(m, &m->segments[last], &m->segments[segment], 0);
    }
}

static int count_epoch(struct measuring *m, struct steps *lists, struct drps_err *err)
{
    uint32_t segment = 0;
    int rc = 0;
    for (uint64_t s = 0; s < m->options->steps && rc == 0; s++) {
        const uint32_t *rows;
        size_t n;
        segment += segment + 1 < m->segments_n && m->segments[segment + 1].start == s;
        rc = drps_steps_rows(lists, s, m->options->rows, &rows, &n, err);
        if (rc == 0) count_step(m, segment, rows, n);
    }
    for (size_t row = 0; row < m->followed && rc == 0; row++)
        if (m->last[row] != NONE)
            count_use_distance(m, &m->segments[m->last[row]], &m->segments[m->first[row]], 1);
    return rc;
}

/* ---- Results ---- */

static void scale_counts(const struct measuring *m, struct drps_moves *moves)
{
    const size_t n = (size_t)moves->windows * (moves->most + 1);
    for (size_t i = 0; i < n; i++)
        moves->counts[i] <<= m->shift;
}

static int count_written(struct measuring *m, size_t i, struct drps_window_measure *out,
                         struct drps_err *err)
{
    const struct cut *cut = &m->cut[i];
    struct drps_moves *moves = &m->moves[i];
    const uint64_t frames =
        drps_relay_frames(&out->share, cut->result.working_set_rows, m->options->rows);
    scale_counts(m, moves);
    for (size_t w = 0; w < cut->n; w++)
        moves->room[w] = frames > cut->pairs[w] ? frames - cut->pairs[w] : 0;
    out->cut = cut->result;
    const struct drps_window_source windows = {.windows = (uint32_t)cut->n};
    const struct drps_store_config config = {
        .rows = m->options->rows, .row_bytes = (size_t)m->options->row_bytes, .windows = &windows};
    int rc = drps_relay_forecast_sent(&config, &out->share, moves, frames, &out->rows_sent);
    return rc == 0 ? 0 : drps_err_set(err, rc, "no memory for %zu windows", cut->n);
}

static int cut_all(struct measuring *m, struct steps *lists, const struct cut_extent *x,
                   const uint64_t *frames, struct drps_window_measure *out, struct drps_err *err)
{
    uint64_t sizes[DRPS_WINDOW_MEASURE_MOST];
    for (size_t i = 0; i < m->n; i++) {
        struct drps_relay_share *share = &out[i].share;
        drps_relay_share_frames(frames[i], m->options->rows, x->step_rows,
                                (size_t)m->options->row_bytes, share);
        sizes[i] =
            drps_relay_window_bytes(share, m->options->rows, x->step_rows) / share->row_bytes;
    }
    return drps_cut_sizes(lists, m->options, x, sizes, m->n, m->cut, err);
}

static int measure(struct measuring *m, struct steps *lists, const uint64_t *frames,
                   struct drps_window_measure *out, struct drps_err *err)
{
    struct cut_extent x;
    int rc = drps_cut_survey(lists, m->options, &x, err);
    if (rc == 0) rc = cut_all(m, lists, &x, frames, out, err);
    if (rc == 0) rc = counting_init(m, &x, err);
    if (rc == 0) rc = count_epoch(m, lists, err);
    for (size_t i = 0; i < m->n && rc == 0; i++)
        if (m->cut[i].n) rc = count_written(m, i, &out[i], err);
    return rc;
}

int drps_windows_measure(const struct drps_io *io, const char *dir,
                         const struct drps_window_options *options, const uint64_t *frames,
                         size_t n, struct drps_window_measure *out, struct drps_err *err)
{
    struct measuring m = {.options = options, .n = n};
    struct steps *lists = NULL;

    memset(out, 0, n * sizeof(*out));
    int rc = n <= DRPS_WINDOW_MEASURE_MOST
                 ? drps_cut_check(options, err)
                 : drps_err_set(err, -EINVAL, "%zu sizes of memory at a time", n);
    if (rc < 0) return rc;
    rc = drps_steps_open(io, dir, DRPS_FILE_ROWS, DRPS_KIND_ROWS, options->steps,
                         options->memory_bytes / 8, &lists, err);
    if (rc == 0) rc = measure(&m, lists, frames, out, err);
    for (size_t i = 0; i < n && n <= DRPS_WINDOW_MEASURE_MOST; i++) {
        drps_cut_free(&m.cut[i]);
        drps_moves_destroy(&m.moves[i]);
    }
    free(m.segments);
    drps_pages_free(m.first, m.followed * sizeof(*m.first));
    drps_pages_free(m.last, m.followed * sizeof(*m.last));
    drps_steps_close(lists);
    return rc;
}
