/*
 * The hash table of keys (key_table.h has its idea): a line of the cache for eight keys, and
 * look-ups in three stages, each of which asks for the memory of the next.
 */
#include "index/dictionary/key_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_rng.h"

enum { SLOTS = 8, FILL = 6 /* of these, in the mean */, FIRST_LINES = 1 << 11 };
#define FAR 48 /* keys between request, guess and comparison */
#define NEAR 24
#define SMALL_AHEAD 128 /* of small ones, most of which are not in L2 */
_Static_assert(FAR < KEY_TABLE_RING, "a ring holds what is on its way");

struct key_line {
    uint32_t tags[SLOTS];
    uint32_t numbers[SLOTS]; /* plus 1; 0: free, as are all that follow */
};
_Static_assert(sizeof(struct key_line) == 64, "a line of the cache");

/* Half a line's tags, or numbers. */
typedef uint32_t four_words __attribute__((vector_size(16)));

static struct key_line *lines_new(size_t n)
{
    return drps_pages_new(n * sizeof(struct key_line)); /* zero: all entries are free */
}

void drps_key_table_close(struct key_table *k)
{
    drps_pages_free(k->lines, k->lines_n * sizeof(*k->lines));
    k->lines = NULL;
}

static void set_lines(struct key_table *k, struct key_line *lines, size_t n)
{
    k->lines = lines;
    k->lines_n = n;
    k->room = n * FILL < k->max ? n * FILL : k->max;
}

/* Make what new keys need, empty. */
static int open_empty(struct key_table *k, size_t lines_n)
{
    k->small = drps_pages_new(k->small_n * sizeof(*k->small)); /* zero: no key is there */
    k->small_bits = 0;
    k->has_small = 0;
    set_lines(k, lines_new(lines_n), lines_n);
    return k->small && k->lines ? 0 : -ENOMEM;
}

static void free_small(struct key_table *k)
{
    drps_pages_free(k->small, k->small_n * sizeof(*k->small));
    k->small = NULL;
}

int drps_key_table_init(struct key_table *k, size_t max, size_t small_n, int checks)
{
    k->small_n = small_n;
    k->max = max < FIRST_LINES * FILL ? FIRST_LINES * FILL : max;
    k->entries = drps_pages_new(k->max * sizeof(*k->entries));
    if (checks) k->checks = drps_pages_new(k->max * sizeof(*k->checks));
    if (open_empty(k, FIRST_LINES) < 0) return -ENOMEM;
    return k->entries && (k->checks || !checks) ? 0 : -ENOMEM;
}

void drps_key_table_close_entries(struct key_table *k)
{
    drps_pages_free(k->entries, k->max * sizeof(*k->entries));
    drps_pages_free(k->checks, k->max * sizeof(*k->checks));
    k->entries = NULL;
    k->checks = NULL;
    drps_key_table_close(k);
}

void drps_key_table_destroy(struct key_table *k)
{
    drps_key_table_close_entries(k);
    free_small(k);
    *k = (struct key_table){0};
}

int drps_key_table_reopen(struct key_table *k)
{
    k->n = 0;
    free_small(k);
    return open_empty(k, k->lines_n);
}

/* Lines are in the order of tags. */
static size_t home(uint32_t tag, size_t lines_n)
{
    return (size_t)((tag * (uint64_t)lines_n) >> 32);
}

static uint32_t tag_of(uint64_t key)
{
    return (uint32_t)(drps_mix64(key) >> 32);
}

static void take_entry(struct key_line *lines, size_t lines_n, uint32_t tag, uint32_t number)
{
    size_t at = home(tag, lines_n);
    while (lines[at].numbers[SLOTS - 1])
        at = at + 1 == lines_n ? 0 : at + 1;
    size_t i = 0;
    while (lines[at].numbers[i])
        i++;
    lines[at].tags[i] = tag;
    lines[at].numbers[i] = number + 1;
}

/* The old lines are read, and the new ones filled, nearly in turn. */
int drps_key_table_grow(struct key_table *k)
{
    const size_t most = (k->max + FILL - 1) / FILL;
    const size_t n = k->lines_n * 2 < most ? k->lines_n * 2 : most;
    struct key_line *lines = lines_new(n);
    if (!lines) return -ENOMEM;
    for (size_t at = 0; at < k->lines_n; at++)
        for (size_t i = 0; i < SLOTS && k->lines[at].numbers[i]; i++)
            take_entry(lines, n, k->lines[at].tags[i], k->lines[at].numbers[i] - 1);
    drps_key_table_close(k);
    set_lines(k, lines, n);
    return 0;
}

int drps_key_table_raise(struct key_table *k, size_t max)
{
    struct key_entry *entries = drps_pages_new(max * sizeof(*entries));
    uint32_t *checks = k->checks ? drps_pages_new(max * sizeof(*checks)) : NULL;
    if (!entries || (k->checks && !checks)) {
        drps_pages_free(entries, max * sizeof(*entries));
        drps_pages_free(checks, max * sizeof(*checks));
        return -ENOMEM;
    }
    memcpy(entries, k->entries, k->n * sizeof(*entries));
    if (checks) memcpy(checks, k->checks, k->n * sizeof(*checks));
    drps_pages_free(k->entries, k->max * sizeof(*entries));
    drps_pages_free(k->checks, k->max * sizeof(*checks));
    k->entries = entries;
    k->checks = checks;
    k->max = max;
    set_lines(k, k->lines, k->lines_n); /* there may be lines for more than the old max */
    return 0;
}

static uint32_t new_entry(struct key_table *k, uint64_t key)
{
    k->entries[k->n] = (struct key_entry){.key = key};
    return (uint32_t)k->n++;
}

static uint32_t find_or_take(struct key_table *k, uint64_t key)
{
    const uint32_t tag = tag_of(key);
    for (size_t at = home(tag, k->lines_n);; at = at + 1 == k->lines_n ? 0 : at + 1) {
        struct key_line *line = &k->lines[at];
        for (size_t i = 0; i < SLOTS; i++) {
            const uint32_t number = line->numbers[i] - 1;
            if (number == KEY_TABLE_NONE) {
                line->tags[i] = tag;
                line->numbers[i] = new_entry(k, key) + 1;
                return line->numbers[i] - 1;
            }
            if (line->tags[i] == tag && k->entries[number].key == key) return number;
        }
    }
}

/* The number beside the tag in its line, without a branch: KEY_TABLE_NONE if there is none, and
 * anything if there are several. */
static uint32_t guess(const struct key_table *k, uint32_t tag)
{
    const struct key_line *line = &k->lines[home(tag, k->lines_n)];
    four_words tags[2], numbers[2];
    uint64_t two[2];
    memcpy(tags, line->tags, sizeof(tags));
    memcpy(numbers, line->numbers, sizeof(numbers));
    const four_words found =
        ((four_words)(tags[0] == tag) & numbers[0]) | ((four_words)(tags[1] == tag) & numbers[1]);
    memcpy(two, &found, sizeof(two));
    two[0] |= two[1];
    return (uint32_t)(two[0] | two[0] >> 32) - 1;
}

static void request_line(struct key_table *k, const uint64_t *keys, size_t j)
{
    if (keys[j] < k->small_n) {
        __builtin_prefetch(&k->small[keys[j]], 1);
        return;
    }
    const uint32_t tag = tag_of(keys[j]);
    k->tags[j % KEY_TABLE_RING] = tag;
    __builtin_prefetch(&k->lines[home(tag, k->lines_n)]);
}

static void request_entry(struct key_table *k, const uint64_t *keys, size_t j)
{
    if (keys[j] < k->small_n) return;
    const uint32_t number = guess(k, k->tags[j % KEY_TABLE_RING]);
    const uint32_t entry = number < k->n ? number : 0;
    k->guesses[j % KEY_TABLE_RING] = number;
    __builtin_prefetch(&k->entries[entry], 1);
    if (k->checks) __builtin_prefetch(&k->checks[entry]);
}

/* ---- Any keys ---- */

static uint32_t take_small(struct key_table *k, uint64_t key)
{
    k->small_bits |= key;
    k->has_small = 1;
    return (uint32_t)key;
}

void drps_key_table_add(struct key_table *k, const uint64_t *keys, size_t first, size_t last,
                        size_t end, uint32_t *ids_out)
{
    for (size_t j = 0; first == 0 && j < FAR && j < end; j++)
        request_line(k, keys, j);
    for (size_t j = 0; first == 0 && j < NEAR && j < end; j++)
        request_entry(k, keys, j);
    for (size_t j = first; j < last; j++) {
        if (j + FAR < end) request_line(k, keys, j + FAR);
        if (j + NEAR < end) request_entry(k, keys, j + NEAR);
        if (keys[j] < k->small_n) {
            ids_out[j - first] = take_small(k, keys[j]);
            continue;
        }
        const uint32_t number = k->guesses[j % KEY_TABLE_RING];
        const int right = number < k->n && k->entries[number].key == keys[j];
        ids_out[j - first] =
            (uint32_t)k->small_n + (__builtin_expect(right, 1) ? number : find_or_take(k, keys[j]));
    }
}

/* The first of its uses says how much is left; a mark of other samples does not. */
static inline void count_use(struct key_count *c, struct key_use use)
{
    const uint16_t left = c->mask ? c->left : 0;
    c->left = left > use.left ? left : use.left;
    c->mask |= use.bit;
    c->uses += c->uses != UINT32_MAX;
}

static inline void mark(struct key_count *c)
{
    if (!c->mask) c->left = 1;
}

void drps_key_table_use(struct key_table *k, const uint32_t *ids, size_t n, struct key_use use)
{
    for (size_t j = 0; j < n; j++) {
        struct key_count *c =
            ids[j] < k->small_n ? &k->small[ids[j]] : &k->entries[ids[j] - k->small_n].count;
        if (use.bit)
            count_use(c, use);
        else
            mark(c);
    }
}

/* ---- Small keys ---- */

int drps_key_table_all_small(struct key_table *k, const uint64_t *keys, size_t first, size_t last)
{
    uint64_t bits = 0;
    for (size_t j = first; j < last; j++)
        bits |= keys[j];
    if (bits >= k->small_n) return 0;
    k->small_bits |= bits;
    k->has_small |= last > first;
    return 1;
}

static inline void request_small(const struct key_table *k, const uint64_t *keys, size_t j,
                                 size_t end)
{
    if (j + SMALL_AHEAD < end && keys[j + SMALL_AHEAD] < k->small_n)
        __builtin_prefetch(&k->small[keys[j + SMALL_AHEAD]], 1);
}

void drps_key_table_use_small(struct key_table *k, const uint64_t *keys, size_t first, size_t last,
                              size_t end, struct key_use use, uint32_t *ids_out)
{
    for (size_t j = first; j < last; j++) {
        request_small(k, keys, j, end);
        ids_out[j - first] = (uint32_t)keys[j];
        if (use.bit)
            count_use(&k->small[keys[j]], use);
        else
            mark(&k->small[keys[j]]);
    }
}
