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
#define SMALL_AHEAD 32
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

void drps_key_table_close_lines(struct key_table *k)
{
    drps_pages_free(k->lines, k->lines_n * sizeof(*k->lines));
    k->lines = NULL;
}

static void set_lines(struct key_table *k, struct key_line *lines, size_t n)
{
    k->lines = lines;
    k->lines_n = n;
    k->room = n * FILL + k->small_used < k->max ? n * FILL + k->small_used : k->max;
}

/* Make what only adding needs, empty. */
static int open_lines(struct key_table *k, size_t lines_n)
{
    k->small = drps_pages_new(k->small_n * sizeof(*k->small)); /* zero: no key is there */
    k->small_used = 0;
    set_lines(k, lines_new(lines_n), lines_n);
    return k->small && k->lines ? 0 : -ENOMEM;
}

int drps_key_table_init(struct key_table *k, size_t max, size_t small_n, int checks)
{
    k->small_n = small_n;
    k->max = max < FIRST_LINES * FILL ? FIRST_LINES * FILL : max;
    k->entries = drps_pages_new(k->max * sizeof(*k->entries));
    if (checks) k->checks = drps_pages_new(k->max * sizeof(*k->checks));
    if (open_lines(k, FIRST_LINES) < 0) return -ENOMEM;
    return k->entries && (k->checks || !checks) ? 0 : -ENOMEM;
}

void drps_key_table_destroy(struct key_table *k)
{
    drps_pages_free(k->entries, k->max * sizeof(*k->entries));
    drps_pages_free(k->checks, k->max * sizeof(*k->checks));
    drps_key_table_close(k);
    *k = (struct key_table){0};
}

void drps_key_table_close(struct key_table *k)
{
    drps_key_table_close_lines(k);
    drps_pages_free(k->small, k->small_n * sizeof(*k->small));
    k->small = NULL;
}

int drps_key_table_reopen(struct key_table *k)
{
    k->n = 0;
    return open_lines(k, k->lines_n);
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
    drps_key_table_close_lines(k);
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
    k->entries[k->n] = (struct key_entry){.key = key, .first = UINT16_MAX};
    return (uint32_t)k->n++;
}

static uint32_t find_or_take_small(struct key_table *k, uint64_t key)
{
    if (!k->small[key]) {
        k->small[key] = new_entry(k, key) + 1;
        k->small_used++;
        if (k->room < k->max) k->room++; /* the entries are as many as before */
    }
    return k->small[key] - 1;
}

static uint32_t find_or_take(struct key_table *k, uint64_t key)
{
    if (key < k->small_n) return find_or_take_small(k, key);
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
    const uint32_t tag = tag_of(keys[j]);
    k->tags[j % KEY_TABLE_RING] = tag;
    __builtin_prefetch(&k->lines[home(tag, k->lines_n)]);
}

static void request_entry(struct key_table *k, size_t j)
{
    const uint32_t number = guess(k, k->tags[j % KEY_TABLE_RING]);
    const uint32_t entry = number < k->n ? number : 0;
    k->guesses[j % KEY_TABLE_RING] = number;
    __builtin_prefetch(&k->entries[entry], 1);
    if (k->checks) __builtin_prefetch(&k->checks[entry]);
}

/* 0 may be wrong. */
static int all_small(const struct key_table *k, const uint64_t *keys, size_t first, size_t last)
{
    uint64_t bits = 0; /* no smaller than any of them */
    for (size_t j = first; j < last; j++)
        bits |= keys[j];
    return bits < k->small_n;
}

/* Asks for the entries, too: they are counted next. */
static void add_small(struct key_table *k, const uint64_t *keys, size_t first, size_t last,
                      size_t end, uint32_t *numbers_out)
{
    for (size_t j = first; j < last; j++) {
        if (j + SMALL_AHEAD < end && keys[j + SMALL_AHEAD] < k->small_n)
            __builtin_prefetch(&k->small[keys[j + SMALL_AHEAD]], 1);
        const uint32_t number = k->small[keys[j]] - 1;
        numbers_out[j - first] = number;
        if (__builtin_expect(number == KEY_TABLE_NONE, 0))
            numbers_out[j - first] = find_or_take_small(k, keys[j]);
        else
            __builtin_prefetch(&k->entries[number], 1);
    }
}

void drps_key_table_add(struct key_table *k, const uint64_t *keys, size_t first, size_t last,
                        size_t end, uint32_t *numbers_out)
{
    if (all_small(k, keys, first, last)) {
        add_small(k, keys, first, last, end, numbers_out);
        return;
    }
    for (size_t j = 0; first == 0 && j < FAR && j < end; j++)
        request_line(k, keys, j);
    for (size_t j = 0; first == 0 && j < NEAR && j < end; j++)
        request_entry(k, j);
    for (size_t j = first; j < last; j++) {
        if (j + FAR < end) request_line(k, keys, j + FAR);
        if (j + NEAR < end) request_entry(k, j + NEAR);
        const uint32_t number = k->guesses[j % KEY_TABLE_RING];
        const int right = number < k->n && k->entries[number].key == keys[j];
        numbers_out[j - first] = __builtin_expect(right, 1) ? number : find_or_take(k, keys[j]);
    }
}
