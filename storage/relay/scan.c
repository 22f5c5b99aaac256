/*
 * All rows in placed order, without disturbing them. Rows lie in frames and in streams, in the
 * order of windows; so they are dealt to partitions of the placed ids (a spool file), and each
 * partition is then put together in memory and visited: two sequential passes over the rows.
 *
 * A group's stream has rows of many windows and does not say which rows they are: the records of
 * the windows that sent them do. Each of these records is read once, for all groups, and its row
 * ids are dealt to a list a group, which follows the partitions in the spool file. Then each
 * group's stream is read beside its list.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "storage/relay/relay.h"

enum { BUFFER_LEAST = DRPS_AIO_ALIGN };
static const char scan_name[] = "scan"; /* the spool: there from the start, so that it has room */

struct part {
    uint64_t begin, room; /* bytes: where it begins in the file, and what it may come to */
    uint64_t written;     /* of it, in the file */
    size_t used;          /* of its buffer */
};

/* Entries are dealt to parts of the file, through a buffer each. */
struct deal {
    size_t n, entry_bytes;
    size_t buffer_bytes; /* whole entries */
    struct part *parts;  /* own: [n] */
    char *buffers;       /* [n][buffer_bytes] */
};

struct spool {
    struct drps_relay *st;
    char *path; /* own */
    int fd;
    uint64_t part_rows;
    struct deal rows; /* to partitions: placed id, what is shown of the row */
    struct deal ids;  /* to groups: placed ids in the order of the group's stream */
    uint64_t *since;  /* own: [groups] the first window whose rows are in the group's stream */
    char *buffers;    /* own: of `rows` */
    char *room;       /* own: a partition's rows; before these, the buffers of `ids` */
    size_t room_bytes;
    char *row; /* own: one row */
};

/* ---- The spool ---- */

static void spool_end(struct spool *sp)
{
    drps_io_close(sp->st->config.io, sp->fd);
    free(sp->path);
    free(sp->rows.parts);
    free(sp->ids.parts);
    free(sp->since);
    free(sp->buffers);
    free(sp->room);
    free(sp->row);
}

static size_t most_of(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* So many parts, whose buffers take `bytes` together, or an entry each if that is more. */
static void deal_init(struct deal *d, size_t n, size_t entry_bytes, uint64_t bytes)
{
    *d = (struct deal){.n = n, .entry_bytes = entry_bytes};
    if (!n) return;
    d->buffer_bytes = most_of((size_t)(bytes / n / entry_bytes), 1) * entry_bytes;
    d->parts = calloc(n, sizeof(*d->parts));
}

/* Where the partitions are, and behind them the groups' lists. A stream has counts, too, so that
 * its rows take less than all of its bytes. */
static void lay_out(struct spool *sp)
{
    const struct drps_relay *st = sp->st;
    uint64_t at = 0;
    for (size_t p = 0; p < sp->rows.n; p++, at += sp->part_rows * sp->rows.entry_bytes)
        sp->rows.parts[p] =
            (struct part){.begin = at, .room = sp->part_rows * sp->rows.entry_bytes};
    for (size_t g = 0; g < sp->ids.n; g++) {
        const uint64_t rows =
            drps_streams_bytes(st->streams, st->source.windows + g) / st->config.row_bytes;
        sp->ids.parts[g] = (struct part){.begin = at, .room = rows * sp->ids.entry_bytes};
        at += sp->ids.parts[g].room;
    }
}

/* A placed id, and what is shown of its row. */
static size_t entry_bytes(const struct drps_relay *st)
{
    const size_t shown = st->config.scan_bytes ? st->config.scan_bytes : st->config.row_bytes;
    return shown + sizeof(uint32_t);
}

int drps_relay_reserve_scan(const struct drps_relay *st, struct drps_err *err)
{
    char *path = drps_path_join(st->config.dir, scan_name);
    if (!path) return drps_err_set(err, -ENOMEM, "no memory for the name of a file");
    /* Groups' rows have their ids in the file once more. */
    const size_t entry = entry_bytes(st) + (st->layout.groups ? sizeof(uint32_t) : 0);
    int rc = drps_io_reserve(st->config.io, path, st->config.rows * entry, err);
    free(path);
    return rc;
}

static int spool_begin(struct spool *sp, struct drps_relay *st, struct drps_err *err)
{
    const size_t row_bytes = st->config.row_bytes;
    const uint64_t half = st->share.scan_bytes / 2;
    const size_t groups = st->layout.groups;
    *sp = (struct spool){.st = st, .fd = -1};
    sp->part_rows = half / row_bytes ? half / row_bytes : 1;
    deal_init(&sp->rows, (size_t)((st->config.rows + sp->part_rows - 1) / sp->part_rows),
              entry_bytes(st), half);
    sp->room_bytes = (size_t)sp->part_rows * row_bytes;
    deal_init(&sp->ids, groups, sizeof(uint32_t), sp->room_bytes);
    sp->room_bytes = most_of(sp->room_bytes, groups * sp->ids.buffer_bytes);
    sp->path = drps_path_join(st->config.dir, scan_name);
    sp->since = drps_array_new(groups, sizeof(*sp->since));
    sp->buffers = sp->rows.buffers = drps_array_new(sp->rows.n, sp->rows.buffer_bytes);
    sp->room = sp->ids.buffers = malloc(sp->room_bytes);
    sp->row = malloc(row_bytes);
    if (!sp->path || !sp->rows.parts || (groups && !sp->ids.parts) || !sp->since || !sp->buffers ||
        !sp->room || !sp->row)
        return drps_err_set(err, -ENOMEM, "no memory to put %llu rows in order",
                            (unsigned long long)st->config.rows);
    lay_out(sp);
    return drps_io_open(st->config.io, sp->path, O_RDWR, &sp->fd, err);
}

static int write_part(const struct spool *sp, struct deal *d, size_t p, struct drps_err *err)
{
    struct part *part = &d->parts[p];
    if (part->written + part->used > part->room)
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "%s: rows appear twice: the plan's windows contradict each other; make "
                            "the plan anew",
                            sp->path);
    int rc = drps_io_write_at(sp->st->config.io, sp->fd, d->buffers + p * d->buffer_bytes,
                              part->used, part->begin + part->written, sp->path, err);
    part->written += part->used;
    part->used = 0;
    return rc;
}

static int write_parts(const struct spool *sp, struct deal *d, struct drps_err *err)
{
    int rc = 0;
    for (size_t p = 0; p < d->n && rc == 0; p++)
        rc = write_part(sp, d, p, err);
    return rc;
}

/* Room for the next entry of part p, or NULL and *rc_out. */
static char *next_entry(const struct spool *sp, struct deal *d, size_t p, int *rc_out,
                        struct drps_err *err)
{
    struct part *part = &d->parts[p];
    *rc_out = part->used == d->buffer_bytes ? write_part(sp, d, p, err) : 0;
    if (*rc_out < 0) return NULL;
    char *at = d->buffers + p * d->buffer_bytes + part->used;
    part->used += d->entry_bytes;
    return at;
}

static int spool_row(struct spool *sp, uint32_t id, const char *row, struct drps_err *err)
{
    int rc;
    char *at = next_entry(sp, &sp->rows, (size_t)(id / sp->part_rows), &rc, err);
    if (!at) return rc;
    memcpy(at, &id, sizeof(id));
    memcpy(at + sizeof(id), row, sp->rows.entry_bytes - sizeof(id));
    return 0;
}

/* ---- Where rows are ---- */

/* Rows in frames: those of the window that is run and of the one opened after it. */
static int spool_open_window(struct spool *sp, uint64_t q, struct drps_err *err)
{
    struct drps_relay *st = sp->st;
    const struct drps_relay_window *win = &st->open[q % 2];
    struct drps_store_window head;
    int rc = st->source.read(st->source.ctx, drps_relay_number(st, q), &head, st->ids, NULL,
                             &st->prev, err);
    for (size_t s = 0; s < head.n && rc == 0; s++) {
        const int far = st->prev.marks[s / 64] >> s % 64 & 1;
        if (q > st->closing && !far) continue; /* seen with the window before */
        rc =
            spool_row(sp, st->ids[s], st->rows + (size_t)win->frame[s] * st->config.row_bytes, err);
    }
    return rc;
}

static int spool_next(struct spool *sp, uint32_t id, struct drps_err *err)
{
    int rc = drps_streams_take(sp->st->streams, sp->row, sp->st->config.row_bytes, err);
    return rc == 0 ? spool_row(sp, id, sp->row, err) : rc;
}

/* 1: the row came straight to the stream of window q, so far, from the window `prev` before. */
static int has_arrived(const struct drps_relay *st, uint64_t q, uint32_t prev)
{
    if (prev < 2 || prev > q || q - prev >= st->closing) return 0;
    return 1;
}

/* 1: the row's group was dealt out since its window closed, or it was sent directly. */
static int is_in_window_stream(const struct drps_relay *st, uint64_t q, uint32_t prev)
{
    const uint32_t w = drps_relay_number(st, q - prev);
    const uint32_t route = drps_relay_route(st, w, prev);
    if (route < st->source.windows) return 1;
    /* its group is dealt out when the first window of the group before it closes */
    const uint32_t span = st->layout.span;
    const uint32_t group = drps_relay_number(st, q) / span;
    const uint32_t before = (group + st->layout.groups - 1) % st->layout.groups;
    const uint64_t first = q - drps_relay_number(st, q) % span; /* of this pass of the group */
    const uint64_t group_rows = before + 1 == st->layout.groups
                                    ? st->source.windows - (uint64_t)before * span
                                    : span; /* windows of the group before */
    return first >= group_rows && first - group_rows < st->closing;
}

/* 1: the row waits in memory for window q. */
static int is_held(const struct drps_relay *st, uint64_t q, uint32_t prev)
{
    return has_arrived(st, q, prev) && drps_relay_held(st, q - prev, prev);
}

static int is_in_stream(const struct drps_relay *st, uint64_t q, uint32_t prev)
{
    return has_arrived(st, q, prev) && !drps_relay_held(st, q - prev, prev) &&
           is_in_window_stream(st, q, prev);
}

/* How many of a window's far rows are of each way, to st->counts. */
static void count_ways(struct drps_relay *st, const struct drps_use_distances *ways)
{
    memset(st->counts, 0, (st->source.windows + 2) * sizeof(*st->counts));
    for (size_t i = 0; i < ways->n_far; i++)
        st->counts[ways->far[i]]++;
}

/* Their ids to st->order, from place st->counts[way] on; none where that is UINT32_MAX. */
static void order_ids(struct drps_relay *st, const struct drps_use_distances *ways, size_t n)
{
    (void)drps_pick(&st->picker, ways->marks, n, 1, st->ids, st->picked);
    for (size_t i = 0; i < ways->n_far; i++) {
        uint32_t *at = &st->counts[ways->far[i]];
        if (*at != UINT32_MAX) st->order[(*at)++] = st->picked[i];
    }
}

/* Ids of the rows of window q that are where `is_there` says, in the order in which they left, into
 * st->order. */
static size_t list_arrived(struct drps_relay *st, uint64_t q, size_t n,
                           int (*is_there)(const struct drps_relay *, uint64_t, uint32_t))
{
    uint32_t at = 0;
    count_ways(st, &st->prev);
    for (uint32_t d = st->source.windows; d > 1; d--) {
        const uint32_t rows = st->counts[d] && is_there(st, q, d) ? st->counts[d] : 0;
        st->counts[d] = rows ? at : UINT32_MAX;
        at += rows;
    }
    order_ids(st, &st->prev, n);
    return at;
}

static int end_of_stream(struct drps_relay *st, size_t stream, uint64_t taken, struct drps_err *err)
{
    if (taken != drps_streams_bytes(st->streams, stream))
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "stream %zu holds %llu bytes, %llu are due: the plan's windows "
                            "contradict each other; make the plan anew",
                            stream, (unsigned long long)drps_streams_bytes(st->streams, stream),
                            (unsigned long long)taken);
    return drps_streams_end(st->streams, err);
}

static int spool_stream(struct spool *sp, uint64_t q, size_t n, struct drps_err *err)
{
    struct drps_relay *st = sp->st;
    const uint32_t w = drps_relay_number(st, q);
    const size_t arrived = list_arrived(st, q, n, is_in_stream);
    int rc = drps_streams_begin(st->streams, w, 1, err);
    for (size_t i = 0; i < arrived && rc == 0; i++)
        rc = spool_next(sp, st->order[i], err);
    return rc == 0 ? end_of_stream(st, w, (uint64_t)arrived * st->config.row_bytes, err) : rc;
}

static int spool_shelf(struct spool *sp, uint64_t q, size_t n, struct drps_err *err)
{
    struct drps_relay *st = sp->st;
    const uint32_t w = drps_relay_number(st, q);
    const size_t held = list_arrived(st, q, n, is_held);
    int rc = 0;
    if (held != drps_shelves_count(st->shelves, w))
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "window %u: %zu rows should wait in memory: the plan's windows "
                            "contradict each other; make the plan anew",
                            w, held);
    drps_shelves_take(st->shelves, w, 0, st->picked);
    for (size_t i = 0; i < held && rc == 0; i++)
        rc = spool_row(sp, st->order[i], st->rows + (size_t)st->picked[i] * st->config.row_bytes,
                       err);
    return rc;
}

/* Rows on their way to window q, in memory and in its stream. */
static int spool_coming(struct spool *sp, uint64_t q, struct drps_err *err)
{
    struct drps_relay *st = sp->st;
    const uint32_t w = drps_relay_number(st, q);
    struct drps_store_window head;
    if (!drps_streams_bytes(st->streams, w) && !drps_shelves_count(st->shelves, w)) return 0;
    int rc = st->source.read(st->source.ctx, w, &head, st->ids, NULL, &st->prev, err);
    if (rc == 0) rc = spool_shelf(sp, q, head.n, err);
    return rc == 0 ? spool_stream(sp, q, head.n, err) : rc;
}

/* ---- Rows in groups' streams ---- */

/* The first of the windows whose rows lie in a group's stream: those closed since the group was
 * last dealt out. */
static uint64_t first_since(const struct drps_relay *st, uint32_t group)
{
    const uint32_t windows = st->source.windows;
    const uint32_t before = (group + st->layout.groups - 1) % st->layout.groups;
    const uint64_t dealt = (uint64_t)before * st->layout.span; /* window of each epoch */
    if (!drps_streams_bytes(st->streams, (size_t)windows + group)) return st->closing;
    uint64_t q = st->closing / windows * windows + dealt; /* the last time, or a later one */
    while (q >= st->closing && q >= windows)
        q -= windows;
    return q >= st->closing ? 0 : q;
}

/* The group in whose stream rows of window q lie that are used d windows later; `groups`: none. */
static uint32_t group_of(const struct spool *sp, uint64_t q, uint32_t d)
{
    const struct drps_relay *st = sp->st;
    const uint32_t groups = st->layout.groups;
    if (drps_relay_held(st, q, d)) return groups;
    const uint32_t route = drps_relay_route(st, drps_relay_number(st, q), d);
    if (route < st->source.windows) return groups;
    const uint32_t group = route - st->source.windows;
    return q < sp->since[group] ? groups : group;
}

/* The ids of the rows that window q has sent to groups' streams, to the lists of these. */
static int list_sent(struct spool *sp, uint64_t q, struct drps_err *err)
{
    struct drps_relay *st = sp->st;
    const uint32_t windows = st->source.windows, groups = st->layout.groups;
    struct drps_use_distances *next = &st->prev; /* as scratch */
    struct drps_store_window head;
    uint32_t total = 0, at = 0;
    int rc =
        st->source.read(st->source.ctx, drps_relay_number(st, q), &head, st->ids, next, NULL, err);
    if (rc < 0) return rc;
    count_ways(st, next);
    for (uint32_t d = 2; d <= windows; d++) {
        const uint32_t rows = st->counts[d] && group_of(sp, q, d) < groups ? st->counts[d] : 0;
        st->counts[d] = rows ? total : UINT32_MAX;
        total += rows;
    }
    order_ids(st, next, head.n);
    for (uint32_t d = 2; d <= windows && rc == 0; d++) {
        if (st->counts[d] == UINT32_MAX) continue; /* else its end, now */
        const uint32_t group = group_of(sp, q, d);
        for (; at < st->counts[d] && rc == 0; at++) {
            char *to = next_entry(sp, &sp->ids, group, &rc, err);
            if (to) memcpy(to, &st->order[at], sizeof(st->order[at]));
        }
    }
    return rc;
}

static int list_all_sent(struct spool *sp, struct drps_err *err)
{
    struct drps_relay *st = sp->st;
    uint64_t q = st->closing;
    int rc = 0;
    for (uint32_t g = 0; g < st->layout.groups; g++) {
        sp->since[g] = first_since(st, g);
        if (sp->since[g] < q) q = sp->since[g];
    }
    for (; q < st->closing && rc == 0; q++)
        rc = list_sent(sp, q, err);
    return rc == 0 ? write_parts(sp, &sp->ids, err) : rc;
}

/* A group's list, read from its begin on. */
struct list {
    uint64_t left, taken; /* bytes: not yet given out, and read from the file */
    size_t at, end;       /* in the room */
};

static int next_id(const struct spool *sp, uint32_t group, struct list *l, uint32_t *id_out,
                   struct drps_err *err)
{
    const struct part *part = &sp->ids.parts[group];
    if (!l->left)
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "group %u has more rows than its windows sent: the plan's windows "
                            "contradict each other; make the plan anew",
                            group);
    if (l->at == l->end) {
        const size_t room = sp->room_bytes / sizeof(*id_out) * sizeof(*id_out);
        l->at = 0;
        l->end = l->left < room ? (size_t)l->left : room;
        int rc = drps_io_read_at(sp->st->config.io, sp->fd, sp->room, l->end,
                                 part->begin + l->taken, sp->path, err);
        if (rc < 0) return rc;
        l->taken += l->end;
    }
    memcpy(id_out, sp->room + l->at, sizeof(*id_out));
    l->at += sizeof(*id_out);
    l->left -= sizeof(*id_out);
    return 0;
}

/* What one window has sent to the group: how many rows go to each of its windows, then the rows. */
static int spool_piece(struct spool *sp, uint32_t group, struct list *l, uint64_t *taken,
                       struct drps_err *err)
{
    struct drps_relay *st = sp->st;
    const size_t counts_bytes = st->layout.span * sizeof(*st->counts);
    uint64_t rows = 0;
    int rc = drps_streams_take(st->streams, st->counts, counts_bytes, err);
    for (uint32_t i = 0; i < st->layout.span && rc == 0; i++)
        rows += st->counts[i];
    *taken += counts_bytes;
    for (; rows && rc == 0; rows--) {
        uint32_t id = 0;
        rc = next_id(sp, group, l, &id, err);
        if (rc == 0) rc = spool_next(sp, id, err);
        *taken += st->config.row_bytes;
    }
    return rc;
}

static int spool_group_stream(struct spool *sp, uint32_t group, struct drps_err *err)
{
    struct drps_relay *st = sp->st;
    const size_t stream = (size_t)st->source.windows + group;
    const uint64_t bytes = drps_streams_bytes(st->streams, stream);
    struct list l = {.left = sp->ids.parts[group].written};
    uint64_t taken = 0;
    if (!bytes) return 0;
    int rc = drps_streams_begin(st->streams, stream, 1, err);
    while (taken < bytes && rc == 0)
        rc = spool_piece(sp, group, &l, &taken, err);
    if (rc == 0 && l.left)
        rc = drps_err_set(err, DRPS_E_CORRUPT,
                          "group %u has fewer rows than its windows sent: the plan's windows "
                          "contradict each other; make the plan anew",
                          group);
    return rc == 0 ? end_of_stream(st, stream, taken, err) : rc;
}

/* ---- All of them ---- */

static int spool_all(struct spool *sp, struct drps_err *err)
{
    struct drps_relay *st = sp->st;
    const uint64_t q = st->closing; /* it and the next one are in memory */
    int rc = 0;
    for (uint64_t i = 0; i < 2 && q + i < st->all_windows && rc == 0; i++)
        rc = spool_open_window(sp, q + i, err);
    for (uint64_t i = 0; i < st->source.windows && rc == 0; i++)
        rc = spool_coming(sp, q + 2 + i, err);
    if (rc == 0) rc = list_all_sent(sp, err);
    for (uint32_t g = 0; g < st->layout.groups && rc == 0; g++)
        rc = spool_group_stream(sp, g, err);
    return rc == 0 ? write_parts(sp, &sp->rows, err) : rc;
}

/* ---- Visiting ---- */

static int place_entries(struct spool *sp, size_t p, const char *entries, size_t bytes,
                         struct drps_err *err)
{
    const size_t row_bytes = sp->st->config.row_bytes;
    const uint64_t first = p * sp->part_rows;
    for (size_t at = 0; at < bytes; at += sp->rows.entry_bytes) {
        uint32_t id;
        memcpy(&id, entries + at, sizeof(id));
        if (id < first || id - first >= sp->part_rows || id >= sp->st->config.rows)
            return drps_err_set(err, DRPS_E_CORRUPT,
                                "%s: row %u in the part of rows %llu on: check the disk", sp->path,
                                id, (unsigned long long)first);
        memcpy(sp->room + (size_t)(id - first) * row_bytes, entries + at + sizeof(id),
               sp->rows.entry_bytes - sizeof(id));
    }
    return 0;
}

/* Rows of one partition: as they were created, unless they have been somewhere since. */
static int visit_part(struct spool *sp, size_t p, drps_row_visit visit, void *ctx,
                      struct drps_err *err)
{
    const struct drps_store_config *c = &sp->st->config;
    const uint64_t first = p * sp->part_rows;
    const uint64_t left = c->rows - first;
    const size_t n = (size_t)(left < sp->part_rows ? left : sp->part_rows);
    const struct part *part = &sp->rows.parts[p];
    const size_t step = sp->rows.buffer_bytes;
    int rc = 0;

    c->init(c->init_ctx, first, n, sp->room);
    for (uint64_t at = 0; at < part->written && rc == 0; at += step) {
        const uint64_t rest = part->written - at;
        const size_t bytes = rest < step ? (size_t)rest : step;
        rc = drps_io_read_at(c->io, sp->fd, sp->buffers, bytes, part->begin + at, sp->path, err);
        if (rc == 0) rc = place_entries(sp, p, sp->buffers, bytes, err);
    }
    return rc == 0 ? visit(ctx, first, n, sp->room, err) : rc;
}

int drps_relay_scan(struct drps_relay *st, drps_row_visit visit, void *ctx, struct drps_err *err)
{
    struct spool sp;
    int rc = spool_begin(&sp, st, err);
    if (rc == 0) rc = spool_all(&sp, err);
    for (size_t p = 0; p < sp.rows.n && rc == 0; p++)
        rc = visit_part(&sp, p, visit, ctx, err);
    spool_end(&sp);
    return rc;
}
