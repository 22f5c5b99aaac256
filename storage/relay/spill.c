/*
 * Rows leave memory: those that wait for the windows furthest away become a run. This is Belady's
 * rule, for many rows at a time. Which windows these are is decided when a run is begun. Their rows
 * leave one window after the other, as frames are needed, so that the disk has steady work.
 */
#include "storage/relay/relay.h"

void drps_relay_free_frames(struct drps_relay *st, const uint32_t *frames, size_t n)
{
    for (size_t i = 0; i < n; i++)
        st->free_frames[frames[i] / 64] |= UINT64_C(1) << frames[i] % 64;
    st->free_n += n;
}

int drps_relay_end_run(struct drps_relay *st, struct drps_err *err)
{
    if (!st->spill.begun) return 0;
    int rc = drps_runs_end(st->runs, err);
    if (rc == 0) st->spill.begun = 0; /* else it goes on, and is ended again */
    return rc;
}

/* Begin a run of the windows up to the last one that rows can wait for: of as many as have the
 * usual number of rows together, or of all after q. */
static int begin_run(struct drps_relay *st, uint64_t q, struct drps_err *err)
{
    const uint64_t last = q + st->source.windows - 2; /* windows up to q - 2 have closed */
    const uint64_t usual = st->spill_rows;
    uint64_t n = 0, window = last + 1;
    while (n < usual && window > q + 1)
        n += drps_waiting_count(st->waiting, drps_relay_number(st, --window));
    if (!n)
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "window %llu: too many rows: the plan's windows contradict each other; "
                            "make the plan anew",
                            (unsigned long long)q);
    st->spill = (struct drps_spill){.begun = 1, .first = window, .next = window, .last = last};
    return drps_runs_begin(st->runs, err);
}

/* The rows that wait for the run's next window leave. */
static int add_window(struct drps_relay *st, struct drps_err *err)
{
    const uint64_t window = st->spill.next++;
    const uint32_t w = drps_relay_number(st, window);
    const size_t n = (size_t)drps_waiting_count(st->waiting, w);
    if (!n) return 0;
    drps_waiting_take(st->waiting, w, 1, st->leaving);
    int rc = drps_runs_add(st->runs, window, st->rows, st->leaving, n, err);
    drps_relay_free_frames(st, st->leaving, n);
    st->spilled += n;
    return rc;
}

int drps_relay_make_room(struct drps_relay *st, uint64_t q, uint64_t n, struct drps_err *err)
{
    int rc = 0;
    if (st->spill.begun && st->spill.first <= q + 2) rc = drps_relay_end_run(st, err);
    while (st->free_n < n && rc == 0) {
        if (!st->spill.begun) rc = begin_run(st, q, err);
        if (rc == 0) rc = add_window(st, err);
        if (rc == 0 && st->spill.next > st->spill.last) rc = drps_relay_end_run(st, err);
    }
    if (rc == 0 && st->spill.begun && st->spill.first <= q + 2) rc = drps_relay_end_run(st, err);
    return rc;
}
