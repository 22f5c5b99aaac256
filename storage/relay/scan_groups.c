/*
 * The rows of a scan that are in groups' streams.
 *
 * Such a stream has rows of many windows and does not say which rows they are: the records of the
 * windows that sent them do. Each of these records is read once, for all groups, and its row ids
 * are split among lists of the scan file, one a group. Then each group's stream is read beside its
 * list.
 */
#include <string.h>

#include "storage/relay/scan.h"

/* ---- Which rows are there ---- */

/* The first of the windows whose rows lie in a group's stream: those closed since the stream was
 * last passed on to its windows, which is done when the first window of the group before closes. */
static uint64_t first_since(const struct drps_relay *st, uint32_t group)
{
    const uint32_t windows = st->source.windows;
    const uint32_t before = (group + st->layout.groups - 1) % st->layout.groups;
    const uint32_t next = drps_relay_number(st, st->closing);
    const uint64_t closed =
        (next + windows - before * st->layout.span - 1) % windows + 1; /* since */
    if (!drps_scan_stream_bytes(st, (size_t)windows + group)) return st->closing;
    return closed < st->closing ? st->closing - closed : 0;
}

/* The group in whose stream the rows lie that left window q and are used d windows later; as many
 * as there are groups if they lie in none. */
static uint32_t group_of(const struct drps_scan *sc, uint64_t q, uint32_t d)
{
    const struct drps_relay *st = sc->st;
    const uint32_t groups = st->layout.groups;
    if (drps_relay_held(st, q, d)) return groups;
    const uint32_t route = drps_relay_route(st, drps_relay_number(st, q), d);
    if (route < st->source.windows) return groups;
    const uint32_t group = route - st->source.windows;
    return q < sc->since[group] ? groups : group;
}

/* Write the ids of the rows that window q has sent to groups' streams to the groups' lists. */
static int list_sent(struct drps_scan *sc, uint64_t q, struct drps_err *err)
{
    struct drps_relay *st = sc->st;
    const uint32_t windows = st->source.windows, groups = st->layout.groups;
    struct drps_use_distances *next = &st->prev; /* as scratch */
    struct drps_store_window head;
    uint32_t total = 0, at = 0;
    int rc =
        st->source.read(st->source.ctx, drps_relay_number(st, q), &head, st->ids, next, NULL, err);
    if (rc < 0) return rc;
    drps_scan_count(st, next);
    for (uint32_t d = 2; d <= windows; d++) {
        const uint32_t rows = st->counts[d] && group_of(sc, q, d) < groups ? st->counts[d] : 0;
        st->counts[d] = rows ? total : UINT32_MAX;
        total += rows;
    }
    drps_scan_order_ids(st, next, head.n);
    for (uint32_t d = 2; d <= windows && rc == 0; d++) {
        if (st->counts[d] == UINT32_MAX) continue; /* else its end, now */
        const uint32_t group = group_of(sc, q, d);
        for (; at < st->counts[d] && rc == 0; at++) {
            char *to = drps_scan_next_entry(sc, &sc->ids, group, &rc, err);
            if (to) memcpy(to, &st->order[at], sizeof(st->order[at]));
        }
    }
    return rc;
}

static int list_all_sent(struct drps_scan *sc, struct drps_err *err)
{
    struct drps_relay *st = sc->st;
    uint64_t q = st->closing;
    int rc = 0;
    for (uint32_t g = 0; g < st->layout.groups; g++) {
        sc->since[g] = first_since(st, g);
        if (sc->since[g] < q) q = sc->since[g];
    }
    for (; q < st->closing && rc == 0; q++)
        rc = list_sent(sc, q, err);
    return rc == 0 ? drps_scan_write(sc, &sc->ids, err) : rc;
}

/* ---- Their streams ---- */

/* A group's list, read from its begin on. */
struct list {
    uint64_t left, taken; /* bytes not yet given out, and bytes read from the file */
    size_t at, end;       /* in the room */
};

static int next_id(const struct drps_scan *sc, uint32_t group, struct list *l, uint32_t *id_out,
                   struct drps_err *err)
{
    const struct drps_scan_part *part = &sc->ids.parts[group];
    if (!l->left)
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "group %u has more rows than its windows sent: the plan's windows "
                            "contradict each other; make the plan anew",
                            group);
    if (l->at == l->end) {
        const size_t room = sc->room_bytes / sizeof(*id_out) * sizeof(*id_out);
        l->at = 0;
        l->end = l->left < room ? (size_t)l->left : room;
        int rc = drps_io_read_at(sc->st->config.io, sc->fd, sc->room, l->end,
                                 part->begin + l->taken, sc->path, err);
        if (rc < 0) return rc;
        l->taken += l->end;
    }
    memcpy(id_out, sc->room + l->at, sizeof(*id_out));
    l->at += sizeof(*id_out);
    l->left -= sizeof(*id_out);
    return 0;
}

/* Put what one window has sent to the group. Its stream has there how many rows go to each of the
 * group's windows, then the rows. */
static int scan_piece(struct drps_scan *sc, uint32_t group, struct list *l, uint64_t *taken,
                      struct drps_err *err)
{
    struct drps_relay *st = sc->st;
    const size_t counts_bytes = st->layout.span * sizeof(*st->counts);
    uint64_t rows = 0;
    int rc = drps_scan_read(st, st->counts, counts_bytes, err);
    for (uint32_t i = 0; i < st->layout.span && rc == 0; i++)
        rows += st->counts[i];
    *taken += counts_bytes;
    for (; rows && rc == 0; rows--) {
        uint32_t id = 0;
        rc = next_id(sc, group, l, &id, err);
        if (rc == 0) rc = drps_scan_take(sc, id, err);
        *taken += st->config.row_bytes;
    }
    return rc;
}

static int scan_group(struct drps_scan *sc, uint32_t group, struct drps_err *err)
{
    struct drps_relay *st = sc->st;
    const size_t stream = (size_t)st->source.windows + group;
    const uint64_t bytes = drps_scan_stream_bytes(st, stream);
    struct list l = {.left = sc->ids.parts[group].written};
    uint64_t taken = 0;
    if (!bytes) return 0;
    int rc = drps_scan_begin_stream(st, stream, err);
    if (rc < 0) return rc;
    while (taken < bytes && rc == 0)
        rc = scan_piece(sc, group, &l, &taken, err);
    if (rc == 0 && l.left)
        rc = drps_err_set(err, DRPS_E_CORRUPT,
                          "group %u has fewer rows than its windows sent: the plan's windows "
                          "contradict each other; make the plan anew",
                          group);
    return drps_scan_end_stream(st, stream, taken, rc, err);
}

int drps_scan_groups(struct drps_scan *sc, struct drps_err *err)
{
    int rc = list_all_sent(sc, err);
    for (uint32_t g = 0; g < sc->st->layout.groups && rc == 0; g++)
        rc = scan_group(sc, g, err);
    return rc;
}
