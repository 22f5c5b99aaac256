/* Taking rows: of the queue, then of the runs, the oldest first, which is the order of the array.
 */
#include <string.h>

#include "storage/relay/runs/rowcopy.h"
#include "storage/relay/runs/runs_internal.h"

enum {
    HORIZON = 64, /* windows to read ahead for */
};

/* ---- Reading ahead ---- */

/* The chunks at hand that windows up to `horizon` need: each run has a buffer for its own. */
static void ask_first(struct drps_runs *r, uint64_t horizon)
{
    for (uint32_t i = 0; i < r->n; i++)
        if (r->asks[i] <= horizon && r->runs[i].first == DRPS_RUNS_NONE && drps_runs_can_ask(r, i))
            drps_runs_ask(r, i);
}

/* The chunks that follow these, as many as there is memory for. */
static void ask_more(struct drps_runs *r, uint64_t horizon)
{
    for (uint32_t i = 0; i < r->n; i++)
        while (r->asks[i] <= horizon && drps_runs_can_ask(r, i))
            drps_runs_ask(r, i);
}

/* The last window that can be asked for is that before never. */
static uint64_t later(uint64_t window, uint64_t n)
{
    return window < DRPS_RUNS_NEVER - 1 - n ? window + n : DRPS_RUNS_NEVER - 1;
}

int drps_runs_prefetch(struct drps_runs *r, uint64_t window, struct drps_err *err)
{
    int rc = drps_runs_bring(r, later(window, 1), err);
    if (rc == 0) rc = drps_runs_reap(r, 0, err);
    if (rc < 0) return rc;
    ask_first(r, window);
    ask_more(r, window);
    ask_first(r, later(window, HORIZON));
    for (uint64_t n = 1; n <= HORIZON; n *= 2)
        ask_more(r, later(window, n));
    return drps_runs_submit(r, err);
}

/* ---- Taking ---- */

static int take_bytes(struct drps_runs *r, uint32_t i, char *to, size_t n, struct drps_err *err)
{
    while (n) {
        const char *at;
        size_t there;
        int rc = drps_runs_peek(r, i, &at, &there, err);
        if (rc < 0) return rc;
        const size_t now = n < there ? n : there;
        memcpy(to, at, now);
        to += now;
        n -= now;
        rc = drps_runs_skip(r, i, now, err);
        if (rc < 0) return rc;
    }
    return 0;
}

/* Take some rows of the section at hand, of n at most; *now_out says how many. */
static int take_some(struct drps_runs *r, uint32_t i, char *base, const uint32_t *frames, size_t n,
                     size_t *now_out, struct drps_err *err)
{
    struct drps_run *run = &r->runs[i];
    const size_t row_bytes = r->config.row_bytes;
    const char *at;
    size_t there;
    int rc = drps_runs_peek(r, i, &at, &there, err);
    if (rc < 0) return rc;
    const size_t whole = there / row_bytes, most = run->left < n ? (size_t)run->left : n;
    const size_t now = whole < most ? whole : most;
    *now_out = now ? now : 1;
    run->left -= *now_out;
    if (!now) return take_bytes(r, i, base + frames[0] * row_bytes, row_bytes, err);
    drps_rowcopy_scatter(at, base, row_bytes, frames, n, now);
    return drps_runs_skip(r, i, now * row_bytes, err);
}

/* Take up to n rows of the section that run i is at; *taken_out says how many. */
static int take_section(struct drps_runs *r, uint32_t i, char *base, const uint32_t *frames,
                        size_t n, size_t *taken_out, struct drps_err *err)
{
    struct drps_run *run = &r->runs[i];
    int gone, rc = run->left ? 0 : drps_runs_open_section(r, i, err);
    *taken_out = 0;
    while (*taken_out < n && rc == 0 && run->left) {
        size_t now = 0;
        rc = take_some(r, i, base, frames + *taken_out, n - *taken_out, &now, err);
        *taken_out += now;
    }
    return rc < 0 || run->left ? rc : drps_runs_end_section(r, i, &gone, err);
}

static int left_out(const struct drps_runs *r, uint64_t window, uint64_t need, struct drps_err *err)
{
    return drps_err_set(err, DRPS_E_CORRUPT,
                        "%s: window %llu was taken, and rows of window %llu are left: the plan's "
                        "windows contradict each other; make the plan anew",
                        r->config.path, (unsigned long long)window, (unsigned long long)need);
}

/* The next run that has rows of the window, or of one before it. */
static int find_turn(struct drps_runs *r, uint64_t window, struct drps_err *err)
{
    while (r->turn < r->n && r->needs[r->turn] > window)
        r->turn++;
    if (r->turn == r->n)
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "%s: window %llu has fewer rows than it needs: the plan's windows "
                            "contradict each other; make the plan anew",
                            r->config.path, (unsigned long long)window);
    return r->needs[r->turn] < window ? left_out(r, window, r->needs[r->turn], err) : 0;
}

int drps_runs_take(struct drps_runs *r, uint64_t window, char *base, const uint32_t *frames,
                   size_t n, struct drps_err *err)
{
    if (r->window != window) r->turn = 0;
    r->window = window;
    int rc = drps_runs_bring(r, window, err);
    while (n && rc == 0) {
        size_t now = 0;
        rc = find_turn(r, window, err);
        if (rc == 0) rc = take_section(r, r->turn, base, frames, n, &now, err);
        frames += now;
        n -= now;
    }
    return rc == 0 ? drps_runs_submit(r, err) : rc;
}

int drps_runs_taken(struct drps_runs *r, uint64_t window, struct drps_err *err)
{
    uint64_t least = drps_runs_behind(r);
    for (uint32_t i = 0; i < r->n; i++)
        if (r->needs[i] < least) least = r->needs[i];
    return least <= window ? left_out(r, window, least, err) : 0;
}

/* ---- Looking ---- */

int drps_runs_look(struct drps_runs *r, struct drps_err *err)
{
    int rc = drps_runs_stop_merging(r, err);
    if (rc == 0) rc = drps_runs_bring(r, DRPS_RUNS_NEVER - 1, err);
    if (rc == 0) rc = drps_runs_await_all(r, err);
    if (rc < 0) return rc;
    memcpy(r->aside.runs, r->runs, r->n * sizeof(*r->runs));
    r->aside.n = r->n;
    r->aside.used = 1;
    drps_runs_forget_reads(r, r->config.looking ? 0 : drps_runs_ahead_lent(r->config.ahead));
    return 0;
}

int drps_runs_looked(struct drps_runs *r, struct drps_err *err)
{
    if (!r->aside.used) return 0;
    int rc = drps_runs_await_all(r, err);
    if (rc < 0) return rc;
    memcpy(r->runs, r->aside.runs, r->aside.n * sizeof(*r->runs));
    r->n = r->aside.n;
    r->aside.used = 0;
    r->turn = 0;
    drps_runs_forget_reads(r, 0);
    return 0;
}

struct drps_runs_lent drps_runs_lend(const struct drps_runs *r)
{
    const size_t lent =
        r->aside.used ? r->behind_n + (r->config.ahead - r->ahead) : r->behind_n + r->reads_n;
    return (struct drps_runs_lent){.at = r->mem, .bytes = lent * r->config.chunk_bytes};
}
