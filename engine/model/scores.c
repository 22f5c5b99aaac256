/* Scores counted by value: cells are sorted, added and joined as engine/model/scores.h says. */
#include "engine/model/scores.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"

enum {
    CAPACITY = DRPS_SCORES_MOST + DRPS_SCORES_WAITING,
    LEVELS = 19,
    DIGIT_BITS = 8,
    DIGITS = 32 / DIGIT_BITS,
    BUCKETS = 1 << DIGIT_BITS,
    SUMMED = 16, /* cells whose counts are summed beforehand */
};
_Static_assert(DRPS_SCORES_MOST / SUMMED + 1 <= DRPS_SCORES_WAITING / 2, "the sums have room");
_Static_assert((1 << (32 - LEVELS)) + 4 * DRPS_SCORES_FINE <= DRPS_SCORES_MOST, "see scores.h");

int drps_scores_init(struct drps_scores *s)
{
    memset(s, 0, sizeof(*s));
    s->cells = drps_array_new(CAPACITY, sizeof(*s->cells));
    s->waiting = drps_array_new(DRPS_SCORES_WAITING / 2, sizeof(*s->waiting));
    return s->cells && s->waiting ? 0 : -ENOMEM;
}

void drps_scores_destroy(struct drps_scores *s)
{
    free(s->cells);
    free(s->waiting);
    memset(s, 0, sizeof(*s));
}

void drps_scores_reset(struct drps_scores *s)
{
    s->n = s->waiting_n = 0;
    s->weighted = 0;
    s->level = 0;
    s->total = 0;
}

/* ---- Cells ---- */

static uint32_t spread(unsigned width) /* from the first to the last value */
{
    return (uint32_t)((UINT64_C(1) << width) - 1);
}

static uint32_t first_of(const struct drps_score_cell *c)
{
    return c->last - spread(c->width);
}

static int before(const struct drps_score_cell *a, const struct drps_score_cell *b)
{
    return a->last != b->last ? a->last < b->last : a->width < b->width;
}

/* ---- Fewer cells ---- */

/* Cells are read in front of where they are written, which never overtakes. */
struct reduction {
    struct drps_score_cell *cells;
    size_t out;  /* cells written */
    double most; /* scores of a cell that others may be inside of */
};

enum { NONE = -1 };

static ptrdiff_t put(struct reduction *r, const struct drps_score_cell *cell)
{
    r->cells[r->out] = *cell;
    return (ptrdiff_t)r->out++;
}

static void take_out(struct reduction *r, ptrdiff_t at)
{
    r->out--;
    memmove(&r->cells[at], &r->cells[at + 1], (r->out - (size_t)at) * sizeof(*r->cells));
}

/*
 * Join cells of the interval of 2^width values up to own->last: what its halves left to be joined
 * (left < right, or NONE) and its own cell (none if its count is 0) become one if they are light
 * together. Returns what is left to be joined with the other half of a larger interval.
 */
static ptrdiff_t join_family(struct reduction *r, ptrdiff_t left, ptrdiff_t right,
                             const struct drps_score_cell *own)
{
    struct drps_score_cell all = *own;
    if (left != NONE) all.count += r->cells[left].count;
    if (right != NONE) all.count += r->cells[right].count;
    if (all.count > r->most) return own->count > 0 ? put(r, own) : NONE;
    if (!(own->count > 0) && (left == NONE || right == NONE)) return left != NONE ? left : right;
    if (right != NONE) take_out(r, right);
    if (left != NONE) take_out(r, left);
    return put(r, &all);
}

static double count_of(const struct drps_score_cell *cells, size_t from, size_t end)
{
    double sum = 0;
    for (size_t i = from; i < end; i++)
        sum += cells[i].count;
    return sum;
}

/* The cells [from, end) of the interval of 2^width values up to `last`. Returns as above. */
static ptrdiff_t reduce_interval(struct reduction *r, size_t from, size_t end, uint32_t last,
                                 unsigned width)
{
    struct drps_score_cell own = {last, width, 0};
    if (from == end) return NONE;
    if (end - from == 1) return put(r, &r->cells[from]);
    const double sum = count_of(r->cells, from, end);
    if (sum <= r->most) return put(r, &(struct drps_score_cell){last, width, sum});
    /* Two cells or more: it has halves. */
    if (r->cells[end - 1].width == width) own = r->cells[--end];
    const uint32_t middle = last - spread(width - 1) - 1; /* the last of the lower half */
    size_t split = from;
    while (split < end && r->cells[split].last <= middle)
        split++;
    const ptrdiff_t left = reduce_interval(r, from, split, middle, width - 1);
    const ptrdiff_t right = reduce_interval(r, split, end, last, width - 1);
    return join_family(r, left, right, &own);
}

static double coarse(const struct drps_scores *s)
{
    return s->total / DRPS_SCORES_COARSE;
}

/* Joins cells in every interval of 2^level values. One value alone stays exact. */
static void reduce(struct drps_scores *s)
{
    struct reduction r = {.cells = s->cells, .most = s->total / DRPS_SCORES_FINE};
    for (size_t from = 0, end; from < s->n; from = end) {
        const uint32_t last = s->cells[from].last | spread(s->level);
        double sum = s->cells[from].count;
        for (end = from + 1; end < s->n && s->cells[end].last <= last; end++)
            sum += s->cells[end].count;
        if (end == from + 1 && !s->cells[from].width)
            (void)put(&r, &s->cells[from]);
        else if (sum <= coarse(s))
            (void)put(&r, &(struct drps_score_cell){last, s->level, sum});
        else
            (void)reduce_interval(&r, from, end, last, s->level);
    }
    s->n = r.out;
}

static void fit(struct drps_scores *s)
{
    while (s->n > DRPS_SCORES_MOST && s->level < LEVELS) {
        if (s->level) reduce(s);
        if (s->n > DRPS_SCORES_MOST) s->level++;
    }
    if (s->n > DRPS_SCORES_MOST) reduce(s);
}

/* What is to be added: cells in order, or values, or these with weights. */
struct source {
    const char *cells; /* as in a message: not aligned */
    const uint32_t *values;
    const uint64_t *weighted;
    size_t n;
};

static inline struct drps_score_cell cell_at(const struct source *from, size_t i)
{
    struct drps_score_cell cell = {.count = 1};
    if (from->cells) {
        memcpy(&cell, from->cells + i * sizeof(cell), sizeof(cell));
    } else if (from->weighted) {
        const uint32_t bits = (uint32_t)from->weighted[i];
        float weight;
        memcpy(&weight, &bits, sizeof(weight));
        cell.last = (uint32_t)(from->weighted[i] >> 32);
        cell.count = (double)weight;
    } else {
        cell.last = from->values[i];
    }
    return cell;
}

/* Whether `wide`, an interval of 2^level values with no cell inside of it, would stay light enough.
 */
static int may_take(const struct drps_scores *s, const struct drps_score_cell *wide,
                    const struct drps_score_cell *to, const struct drps_score_cell *more)
{
    return wide->width == s->level && s->level && first_of(wide) <= first_of(more) &&
           (to == s->cells || to[-1].last < first_of(wide)) &&
           wide->count + more->count <= coarse(s);
}

/* Adds at most DRPS_SCORES_WAITING values or cells, which the total counts already. */
static void add_cells(struct drps_scores *s, const struct source *more)
{
    struct drps_score_cell *to = s->cells, *have = s->cells + (CAPACITY - s->n);
    const struct drps_score_cell *end = s->cells + CAPACITY;
    memmove(have, s->cells, s->n * sizeof(*have));
    for (size_t i = 0; i < more->n; i++) {
        const struct drps_score_cell next = cell_at(more, i);
        while (have < end && before(have, &next))
            *to++ = *have++;
        if (have < end && may_take(s, have, to, &next))
            have->count += next.count;
        else if (have < end && have->last == next.last && have->width == next.width)
            have->count += next.count;
        else if (to > s->cells && to[-1].last == next.last && to[-1].width == next.width)
            to[-1].count += next.count;
        else
            *to++ = next;
    }
    memmove(to, have, (size_t)(end - have) * sizeof(*to));
    s->n = (size_t)(to - s->cells) + (size_t)(end - have);
    fit(s);
}

/* ---- Values that wait ---- */

/* The value of element i, of `bytes` each: a constant. */
static inline uint32_t value_at(const char *elements, size_t bytes, size_t i)
{
    uint32_t value;
    memcpy(&value, elements + i * bytes + (bytes - sizeof(value)), sizeof(value));
    return value;
}

/* Sorts what waits, byte by byte from the lowest, between `waiting` and the cells that are free;
 * bytes that all share are skipped. */
static inline void sort_waiting(struct drps_scores *s, size_t bytes)
{
    size_t count[DIGITS][BUCKETS];
    char *from = (char *)s->waiting, *to = (char *)(s->cells + s->n);
    memset(count, 0, sizeof(count));
    for (size_t i = 0; i < s->waiting_n; i++)
        for (unsigned d = 0; d < DIGITS; d++)
            count[d][value_at(from, bytes, i) >> (d * DIGIT_BITS) & (BUCKETS - 1)]++;
    for (unsigned d = 0; d < DIGITS; d++) {
        const unsigned shift = d * DIGIT_BITS;
        if (count[d][value_at(from, bytes, 0) >> shift & (BUCKETS - 1)] == s->waiting_n) continue;
        size_t at = 0;
        for (size_t b = 0; b < BUCKETS; b++) {
            const size_t here = count[d][b];
            count[d][b] = at;
            at += here;
        }
        for (size_t i = 0; i < s->waiting_n; i++) {
            const size_t next = count[d][value_at(from, bytes, i) >> shift & (BUCKETS - 1)]++;
            memcpy(to + next * bytes, from + i * bytes, bytes);
        }
        char *sorted = to;
        to = from;
        from = sorted;
    }
    if (from != (char *)s->waiting) memcpy(s->waiting, from, s->waiting_n * bytes);
}

static double weight_of(const struct source *from)
{
    double sum = 0;
    for (size_t i = 0; i < from->n; i++)
        sum += cell_at(from, i).count;
    return sum;
}

void drps_scores_sort_in(struct drps_scores *s)
{
    const struct source weighted = {.weighted = s->waiting, .n = s->waiting_n};
    const struct source values = {.values = (const uint32_t *)(const void *)s->waiting,
                                  .n = s->waiting_n};
    if (s->waiting_n && s->weighted) {
        sort_waiting(s, sizeof(uint64_t));
        s->total += weight_of(&weighted);
        add_cells(s, &weighted);
    } else if (s->waiting_n) {
        sort_waiting(s, sizeof(uint32_t));
        s->total += (double)s->waiting_n;
        add_cells(s, &values);
    }
    s->waiting_n = 0;
    s->weighted = 0;
}

/* Brings the cells into the form that does not depend on when values came. */
static void settle(struct drps_scores *s)
{
    drps_scores_sort_in(s);
    if (s->level) reduce(s);
}

/* ---- Pairs ---- */

/* Pairs whose one of `low` is less for certain. before[k]: what the cells of `low` in front of its
 * SUMMED k-th one count. */
static double pairs_apart(const struct drps_scores *low, const struct drps_scores *high,
                          const double *before)
{
    double pairs = 0;
    for (size_t i = 0; i < high->n; i++) {
        const uint32_t first = first_of(&high->cells[i]);
        size_t from = 0, end = low->n; /* cells before `from` are less */
        while (from < end) {
            const size_t middle = from + (end - from) / 2;
            if (low->cells[middle].last < first)
                from = middle + 1;
            else
                end = middle;
        }
        const size_t run = from / SUMMED;
        pairs += (before[run] + count_of(low->cells, run * SUMMED, from)) * high->cells[i].count;
    }
    return pairs;
}

/* The sums lie where values would wait. */
static double count_apart(struct drps_scores *low, const struct drps_scores *high)
{
    double *before = (double *)(void *)low->waiting, sum = 0;
    for (size_t i = 0; i <= low->n; i++) {
        if (i % SUMMED == 0) before[i / SUMMED] = sum;
        if (i < low->n) sum += low->cells[i].count;
    }
    return pairs_apart(low, high, before);
}

double drps_scores_in_order(struct drps_scores *low, struct drps_scores *high)
{
    settle(low);
    settle(high);
    if (!(low->total > 0) || !(high->total > 0)) return (double)NAN;
    const double all = low->total * high->total;
    return 0.5 * (all + count_apart(low, high) - count_apart(high, low)) / all;
}

/* ---- From one process to another ---- */

struct head {
    uint64_t cells, level;
};

size_t drps_scores_encode(struct drps_scores *s, void *out)
{
    settle(s);
    const struct head head = {s->n, s->level};
    memcpy(out, &head, sizeof(head));
    memcpy((char *)out + sizeof(head), s->cells, s->n * sizeof(*s->cells));
    return sizeof(head) + s->n * sizeof(*s->cells);
}

/* 1: the cells are in order, each an interval, one in the other or apart; *total is how many scores
 * they count. */
static int check_cells(const struct source *from, const struct head *head, double *total)
{
    struct drps_score_cell last = {0};
    *total = 0;
    for (size_t i = 0; i < from->n; i++) {
        const struct drps_score_cell cell = cell_at(from, i);
        if (cell.width > head->level || (cell.last & spread(cell.width)) != spread(cell.width) ||
            !(cell.count > 0) || (i && !before(&last, &cell)))
            return 0;
        *total += cell.count;
        last = cell;
    }
    return isfinite(*total) != 0;
}

int drps_scores_merge(struct drps_scores *s, const char **data, size_t *bytes, struct drps_err *err)
{
    const size_t cell_bytes = sizeof(struct drps_score_cell);
    struct source all = {.cells = *data + sizeof(struct head)};
    struct head head = {0};
    double total;
    if (*bytes >= sizeof(head)) memcpy(&head, *data, sizeof(head));
    if (*bytes < sizeof(head) || head.cells > (*bytes - sizeof(head)) / cell_bytes ||
        head.cells > DRPS_SCORES_MOST || head.level > LEVELS)
        return drps_err_set(err, DRPS_E_PROTO, "metrics of %zu bytes and %llu cells", *bytes,
                            (unsigned long long)head.cells);
    all.n = (size_t)head.cells;
    drps_scores_sort_in(s);
    if (!check_cells(&all, &head, &total) || !isfinite(s->total + total))
        return drps_err_set(err, DRPS_E_PROTO, "metrics with cells that make no sense");
    s->total += total;
    if (s->level < head.level) s->level = (unsigned)head.level;
    for (size_t at = 0, n; at < all.n; at += n) {
        n = all.n - at < DRPS_SCORES_WAITING ? all.n - at : DRPS_SCORES_WAITING;
        add_cells(s, &(struct source){.cells = all.cells + at * cell_bytes, .n = n});
        if (s->n <= DRPS_SCORES_MOST) continue;
        drps_scores_reset(s);
        return drps_err_set(err, DRPS_E_PROTO, "metrics with cells that are too heavy");
    }
    *data += sizeof(head) + all.n * cell_bytes;
    *bytes -= sizeof(head) + all.n * cell_bytes;
    return 0;
}
