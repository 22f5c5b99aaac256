/* A bit a sector and a tree above; free_sectors.h has the idea. It needs memory alone. */
#include "storage/kv/free_sectors.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { WORD = 64 };

static uint64_t words_of(uint64_t sectors)
{
    return (sectors + WORD - 1) / WORD;
}

static uint64_t leaves_for(uint64_t words)
{
    uint64_t leaves = 1;
    while (leaves < words)
        leaves *= 2;
    return leaves;
}

uint64_t drps_free_sectors_bytes(uint64_t sectors)
{
    const uint64_t words = words_of(sectors);
    return words * sizeof(uint64_t) + leaves_for(words) * sizeof(struct drps_free_piece);
}

/* ---- The tree ---- */

static uint32_t ones_below(uint64_t bits) /* in a row, from bit 0 on */
{
    return ~bits ? (uint32_t)__builtin_ctzll(~bits) : WORD;
}

static struct drps_free_piece of_word(const struct drps_free_sectors *v, uint32_t word)
{
    struct drps_free_piece s = {0};
    if (word >= v->words || !~v->used[word]) return s;
    uint64_t free = ~v->used[word];
    s.front = ones_below(free);
    s.back = free == UINT64_MAX ? WORD : (uint32_t)__builtin_clzll(~free);
    for (; free; free &= free << 1)
        s.longest++;
    return s;
}

static struct drps_free_piece of_node(const struct drps_free_sectors *v, uint32_t i)
{
    return i < v->leaves ? v->node[i] : of_word(v, i - v->leaves);
}

/* Node i, whose two children have `half` sectors each. Returns whether it has changed. */
static int join(struct drps_free_sectors *v, uint32_t i, uint64_t half)
{
    const struct drps_free_piece a = of_node(v, 2 * i), b = of_node(v, 2 * i + 1), old = v->node[i];
    struct drps_free_piece s = {.front = a.front == half ? a.front + b.front : a.front,
                                .back = b.back == half ? b.back + a.back : b.back,
                                .longest = a.back + b.front};
    if (s.longest < a.longest) s.longest = a.longest;
    if (s.longest < b.longest) s.longest = b.longest;
    v->node[i] = s;
    return s.front != old.front || s.back != old.back || s.longest != old.longest;
}

/* Join the nodes above words [first, last], as far up as anything changes. */
static void join_above(struct drps_free_sectors *v, uint32_t first, uint32_t last)
{
    uint64_t half = WORD;
    int changed = 1;
    first += v->leaves;
    last += v->leaves;
    while (first > 1 && changed) {
        first /= 2;
        last /= 2;
        changed = 0;
        for (uint32_t i = first; i <= last; i++)
            changed |= join(v, i, half);
        half *= 2;
    }
}

int drps_free_sectors_init(struct drps_free_sectors *v, uint32_t sectors)
{
    const uint32_t words = (uint32_t)words_of(sectors);
    *v = (struct drps_free_sectors){
        .sectors = sectors, .words = words, .leaves = (uint32_t)leaves_for(words)};
    v->used = calloc(words ? words : 1, sizeof(*v->used));
    v->node = calloc(v->leaves, sizeof(*v->node));
    if (!v->used || !v->node) return -ENOMEM;
    if (sectors % WORD) v->used[words - 1] = UINT64_MAX << sectors % WORD; /* beyond the file */
    if (words) join_above(v, 0, words - 1);
    return 0;
}

void drps_free_sectors_destroy(struct drps_free_sectors *v)
{
    free(v->used);
    free(v->node);
    memset(v, 0, sizeof(*v));
}

void drps_free_sectors_mark(struct drps_free_sectors *v, uint32_t first, uint32_t n, int used)
{
    if (!n) return;
    const uint32_t end = first + n;
    for (uint32_t at = first; at < end;) {
        const uint32_t bit = at % WORD, most = WORD - bit, take = end - at < most ? end - at : most;
        const uint64_t mask = (UINT64_MAX >> (WORD - take)) << bit;
        uint64_t *word = &v->used[at / WORD];
        *word = used ? *word | mask : *word & ~mask;
        at += take;
    }
    join_above(v, first / WORD, (end - 1) / WORD);
}

/* ---- Finding ---- */

/* A walk from left to right. */
struct walk {
    const struct drps_free_sectors *v;
    uint64_t from;     /* sector: a piece begins here at the earliest */
    uint32_t want;     /* sectors */
    uint64_t run, end; /* free sectors in a row before `end`, up to which all is looked through */
};

static int take(struct walk *w, uint64_t free)
{
    w->run += free;
    w->end += free;
    return w->run >= w->want;
}

static int walk_word(struct walk *w, uint64_t first)
{
    uint32_t bit = w->from > first ? (uint32_t)(w->from - first) : 0;
    const uint64_t free = first / WORD < w->v->words ? ~w->v->used[first / WORD] : 0;
    w->end = first + bit;
    while (bit < WORD) {
        const uint64_t rest = free >> bit;
        if (!rest) {
            w->run = 0;
            w->end = first + WORD;
            return 0;
        }
        const uint32_t gap = (uint32_t)__builtin_ctzll(rest), n = ones_below(rest >> gap);
        if (gap) w->run = 0;
        w->end += gap;
        if (take(w, n)) return 1;
        bit += gap + n;
    }
    return 0;
}

/* Node i, of n sectors from `first` on. 1: found, w->run sectors before w->end. */
static int walk_node(struct walk *w, uint32_t i, uint64_t first, uint64_t n)
{
    if (first + n <= w->from) return 0;
    if (n == WORD) return walk_word(w, first);
    const struct drps_free_piece s = of_node(w->v, i);
    if (first >= w->from && s.longest < w->want) { /* at most its front is of use */
        w->end = first;
        if (take(w, s.front)) return 1;
        if (s.front < n) w->run = s.back;
        w->end = first + n;
        return 0;
    }
    return walk_node(w, 2 * i, first, n / 2) || walk_node(w, 2 * i + 1, first + n / 2, n / 2);
}

static int find_behind(const struct drps_free_sectors *v, uint32_t from, uint32_t want,
                       uint32_t *at_out)
{
    struct walk w = {.v = v, .from = from, .want = want, .end = from};
    if (!walk_node(&w, 1, 0, (uint64_t)v->leaves * WORD)) return 0;
    *at_out = (uint32_t)(w.end - w.run);
    return 1;
}

uint32_t drps_free_sectors_find(const struct drps_free_sectors *v, uint32_t from, uint32_t want,
                                uint32_t *at_out)
{
    const uint32_t longest = of_node(v, 1).longest;
    if (want > longest) want = longest;
    if (want && !find_behind(v, from, want, at_out)) (void)find_behind(v, 0, want, at_out);
    return want;
}
