/*
 * Homes of rows (drps_homes.h), in passes over a stream of them:
 *
 *   settle     every row to the worker that uses it most
 *   make room  while a machine holds too many rows: those that cost least leave it
 *   ease       a few times: rows leave busy links, at a dearer rate each time
 */
#include "partition/drps_homes.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#define ROWS_SLACK 0.25

/*
 * One pass of easing: a row may leave a link above `limit` times the average if it costs at most
 * `rate` remote rows for each row that the link is rid of. Links become evener than they have to be
 * where that is nearly free.
 */
static const struct easing {
    double limit, rate;
} easings[] = {{1.002, 1.0 / 64}, {1.005, 1.0 / 32}, {1.01, 1.0 / 16}, {1.02, 1.0 / 8},
               {1.03, 1.0 / 4},   {1.04, 1.0 / 2},   {1.04, 1},        {1.04, 4}};

enum { NOWHERE = UINT16_MAX };

struct homing {
    const struct drps_homes_options *o;
    uint32_t rows_n;
    uint32_t holders; /* machines that may hold rows */
    uint64_t rows_max;
    uint16_t *home;            /* borrowed [rows_n] */
    struct drps_home_load *on; /* borrowed [W] */
    uint64_t links;            /* sum over holders */
    struct easing easing;      /* of the pass at hand */
    uint32_t regret_max;       /* making room: what a row may cost */
};

/* A row that is visited. */
struct visited {
    uint32_t row;
    const struct drps_touch *touches;
    size_t n;
    uint64_t uses; /* a_r */
};

static struct visited visited_row(uint32_t row, const struct drps_touch *touches, size_t n)
{
    struct visited v = {row, touches, n, 0};
    for (size_t t = 0; t < n; t++)
        v.uses += touches[t].count;
    return v;
}

static uint32_t uses_by(const struct visited *v, uint32_t machine)
{
    for (size_t t = 0; t < v->n && v->touches[t].machine <= machine; t++)
        if (v->touches[t].machine == machine) return v->touches[t].count;
    return 0;
}

static uint64_t link_of(const struct drps_home_load *on)
{
    return on->pulled + on->served;
}

/* What holding a row adds to the link of a machine that uses it `count` times. */
static double held_link(const struct visited *v, uint32_t count)
{
    return (double)v->uses - 2 * (double)count;
}

static int stays(const struct homing *h, uint32_t row)
{
    return row < h->o->first_stay;
}

/* The machine, which pulled the row `count` times, serves it from now on. */
static void put(struct homing *h, const struct visited *v, uint32_t machine, uint32_t count)
{
    struct drps_home_load *on = &h->on[machine];
    h->home[v->row] = (uint16_t)machine;
    on->rows++;
    on->pulled -= count;
    on->served += v->uses - count;
    h->links += v->uses - 2 * (uint64_t)count; /* wraps where it falls */
}

static void leave(struct homing *h, const struct visited *v, uint32_t machine, uint32_t count)
{
    struct drps_home_load *on = &h->on[machine];
    on->rows--;
    on->pulled += count;
    on->served -= v->uses - count;
    h->links -= v->uses - 2 * (uint64_t)count;
}

/* ---- Settling ---- */

static int check_row(const struct homing *h, const struct visited *v, struct drps_err *err)
{
    int good = v->row < h->rows_n && v->n > 0 && h->home[v->row] == NOWHERE;
    for (size_t t = 0; t < v->n && good; t++)
        good = v->touches[t].machine < h->o->machines && v->touches[t].count > 0 &&
               (t == 0 || v->touches[t].machine > v->touches[t - 1].machine);
    if (good) return 0;
    return drps_err_set(err, -EINVAL,
                        "row %" PRIu32 " of %" PRIu32
                        ": visited twice, or not used by rising machines of %" PRIu32,
                        v->row, h->rows_n, h->o->machines);
}

/* Returns 1 if a is a better home than b for a row that both use alike. Where a home has to serve
 * more than it need no longer pull, that is the one whose link carries less, else the one with
 * fewer rows. */
static int better_home(const struct homing *h, uint32_t a, uint32_t b, double held)
{
    return held > 0 ? link_of(&h->on[a]) < link_of(&h->on[b]) : h->on[a].rows < h->on[b].rows;
}

/* The holder with the smallest link: for rows that no holder uses. */
static uint32_t idle_holder(const struct homing *h)
{
    uint32_t least = 0;
    for (uint32_t m = 1; m < h->holders; m++)
        if (link_of(&h->on[m]) < link_of(&h->on[least])) least = m;
    return least;
}

static int settle(void *ctx, uint32_t row, const struct drps_touch *touches, size_t n,
                  struct drps_err *err)
{
    struct homing *h = ctx;
    const struct visited v = visited_row(row, touches, n);
    struct drps_touch best = {0, 0};
    int rc = check_row(h, &v, err);
    if (rc < 0) return rc;
    for (size_t t = 0; t < n; t++) {
        const struct drps_touch *touch = &touches[t];
        h->on[touch->machine].pulled += touch->count; /* where it is not at home */
        if (touch->machine >= h->holders) continue;
        h->links += touch->count;
        if (touch->count > best.count ||
            (touch->count == best.count &&
             better_home(h, touch->machine, best.machine, held_link(&v, best.count))))
            best = *touch;
    }
    if (!best.count) best.machine = idle_holder(h);
    if (stays(h, row)) best = (struct drps_touch){0, uses_by(&v, 0)};
    put(h, &v, best.machine, best.count);
    return 0;
}

/* Rows that nobody uses go to whoever holds fewest. */
static void settle_unused(struct homing *h)
{
    for (uint32_t r = 0; r < h->rows_n; r++) {
        uint32_t least = 0;
        if (h->home[r] != NOWHERE) continue;
        for (uint32_t m = 1; m < h->holders && !stays(h, r); m++)
            if (h->on[m].rows < h->on[least].rows) least = m;
        h->home[r] = (uint16_t)least;
        h->on[least].rows++;
    }
}

/* ---- Moving ---- */

/* Where a row goes from its home: of the machines where it costs least, and at most regret_max, the
 * one with the smallest link, which is link_max at most with it; W: nowhere. */
struct search {
    const struct visited *v;
    uint32_t home, count; /* which uses it so often */
    double regret_max, link_max;
    uint32_t to, to_count;
    double to_link;
};

static void consider(const struct homing *h, struct search *s, uint32_t machine, uint32_t count)
{
    const double link = (double)link_of(&h->on[machine]) + held_link(s->v, count);
    if (machine == s->home || h->on[machine].rows >= h->rows_max || link > s->link_max ||
        (double)s->count - (double)count > s->regret_max)
        return;
    if (s->to < h->o->machines &&
        (count < s->to_count || (count == s->to_count && link >= s->to_link)))
        return;
    s->to = machine;
    s->to_count = count;
    s->to_link = link;
}

static void move(struct homing *h, struct search *s)
{
    size_t t = 0;
    s->to = h->o->machines;
    for (uint32_t m = 0; m < h->holders; m++) {
        const int uses = t < s->v->n && s->v->touches[t].machine == m;
        consider(h, s, m, uses ? s->v->touches[t++].count : 0);
    }
    if (s->to == h->o->machines) return;
    leave(h, s->v, s->home, s->count);
    put(h, s->v, s->to, s->to_count);
}

static int make_room(void *ctx, uint32_t row, const struct drps_touch *touches, size_t n,
                     struct drps_err *err)
{
    struct homing *h = ctx;
    const uint32_t home = h->home[row];
    (void)err; /* cannot fail */
    if (h->on[home].rows <= h->rows_max || stays(h, row)) return 0;
    const struct visited v = visited_row(row, touches, n);
    move(h, &(struct search){.v = &v,
                             .home = home,
                             .count = uses_by(&v, home),
                             .regret_max = h->regret_max,
                             .link_max = INFINITY});
    return 0;
}

static int ease(void *ctx, uint32_t row, const struct drps_touch *touches, size_t n,
                struct drps_err *err)
{
    struct homing *h = ctx;
    const uint32_t home = h->home[row];
    const double limit = h->easing.limit * (double)h->links / h->holders;
    const double link = (double)link_of(&h->on[home]);
    (void)err; /* cannot fail */
    if (link <= limit || stays(h, row)) return 0;
    const struct visited v = visited_row(row, touches, n);
    const uint32_t count = uses_by(&v, home);
    const double relief = held_link(&v, count);
    if (relief <= 0) return 0; /* the link would carry more without it */
    move(h, &(struct search){.v = &v,
                             .home = home,
                             .count = count,
                             .regret_max = h->easing.rate * relief,
                             .link_max = fmax(limit, link - 1)});
    return 0;
}

/* ---- The whole ---- */

double drps_homes_imbalance(const struct drps_home_load *load, uint32_t machines)
{
    uint64_t all = 0, most = 0;
    for (uint32_t m = 0; m < machines; m++) {
        all += link_of(&load[m]);
        if (link_of(&load[m]) > most) most = link_of(&load[m]);
    }
    return all ? (double)most * machines / (double)all : 1;
}

static int too_many_rows(const struct homing *h)
{
    for (uint32_t m = 0; m < h->holders; m++)
        if (h->on[m].rows > h->rows_max) return 1;
    return 0;
}

/* The average and a quarter, or, of few rows, and one. */
static uint64_t rows_limit(uint32_t rows, uint32_t machines)
{
    const uint64_t average = ((uint64_t)rows + machines - 1) / machines;
    const uint64_t limit = (uint64_t)((1 + ROWS_SLACK) * rows / machines);
    return limit > average + 1 ? limit : average + 1;
}

int drps_homes_place(const struct drps_row_stream *stream, const struct drps_homes_options *o,
                     uint16_t *home_out, struct drps_home_load *load_out, struct drps_err *err)
{
    struct homing h = {.o = o, .rows_n = stream->rows, .home = home_out, .on = load_out};
    if (o->machines < 1 || o->machines > DRPS_HOMES_MACHINES)
        return drps_err_set(err, DRPS_E_CONFIG, "%" PRIu32 " machines; 1 to %d are possible",
                            o->machines, DRPS_HOMES_MACHINES);
    if (o->holders > o->machines)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%" PRIu32 " of %" PRIu32 " machines cannot hold the rows", o->holders,
                            o->machines);
    h.holders = o->holders ? o->holders : o->machines;
    h.rows_max = rows_limit(stream->rows, h.holders);
    memset(load_out, 0, o->machines * sizeof(*load_out));
    for (uint32_t r = 0; r < stream->rows; r++)
        home_out[r] = NOWHERE;
    int rc = stream->walk(stream->ctx, settle, &h, err);
    if (rc == 0) settle_unused(&h);
    for (uint64_t regret = 0; rc == 0 && too_many_rows(&h) && regret <= UINT32_MAX;
         regret = 2 * regret + 1) {
        h.regret_max = (uint32_t)regret;
        rc = stream->walk(stream->ctx, make_room, &h, err);
    }
    for (size_t i = 0; i < sizeof(easings) / sizeof(easings[0]) && rc == 0; i++) {
        h.easing = easings[i];
        if (drps_homes_imbalance(load_out, h.holders) > h.easing.limit)
            rc = stream->walk(stream->ctx, ease, &h, err);
    }
    return rc;
}
