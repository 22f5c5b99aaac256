#include "index/dict.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_endian.h"
#include "base/drps_recfile.h"
#include "index/drps_names.h"
#include "index/extsort.h"
#include "index/grid.h"
#include "index/keys.h"
#include "index/names.h"

#define KIND_RUN DRPS_REC_KIND('R', 'U', 'N', '0')

enum { PAGE_ENTRIES = 4096, AHEAD = 40, SMALL_KEYS = 1 << 24 };

/* Of a key, to sort. */
struct keyed {
    uint64_t key;
    uint32_t number;
};

/* Of a run. */
struct entry {
    uint64_t key;
    uint16_t mask, first;
    uint32_t count;
    uint32_t id, check;
};

/* A name's string in the arena: u16 field | u32 bytes | text. */
enum { NAME_HEAD = 6 };

struct dict {
    const struct drps_io *io;
    char *dir;
    struct dict_options options;

    struct keys keys;     /* of this generation; ids are numbers + base */
    struct keyed *sorted; /* [keys.n] own: at the end of a generation */

    char *arena; /* strings of this generation, in order of id */
    size_t arena_n, arena_cap, arena_max;
    uint64_t *name_at; /* [used] offset in the arena by id - base */
    size_t name_cap;

    uint32_t *bases; /* [generations + 1] */
    size_t bases_n, bases_cap;

    /* Placed ids by provisional id, u32 each: of a single generation, or in a file. */
    uint32_t *placed; /* own: [placed_n] */
    size_t placed_n;
    int map_fd;
    char *map_path;
};

static uint32_t next_id(const struct dict *d)
{
    return d->bases[d->bases_n - 1] + (uint32_t)d->keys.n;
}

/* A generation begins at id `base`. */
static int push_base(struct dict *d, uint32_t base, struct drps_err *err)
{
    if (drps_array_reserve(&d->bases, &d->bases_cap, d->bases_n + 1, sizeof(*d->bases)))
        return drps_err_set(err, -ENOMEM, "no memory for the dictionary");
    d->bases[d->bases_n++] = base;
    return 0;
}

/* Keys of names are hashes. Half of what sorting `max` keys takes is for an array of 4 bytes a key.
 */
static size_t small_keys(const struct dict_options *o, size_t max)
{
    const size_t most = max * sizeof(struct keyed) / sizeof(uint32_t);
    if (o->strings) return 0;
    return most < SMALL_KEYS ? most : SMALL_KEYS;
}

int dict_open(const struct drps_io *io, const char *dir, const struct dict_options *options,
              struct dict **d_out, struct drps_err *err)
{
    *d_out = NULL;
    struct dict *d = calloc(1, sizeof(*d));
    if (!d) return drps_err_set(err, -ENOMEM, "no memory for the dictionary");
    d->io = io;
    d->options = *options;
    d->map_fd = -1;
    d->dir = strdup(dir);
    /* While keys are sorted there are two arrays of them; before, the table's lines take less, the
     * old ones that are left when it grows and the array of small ones included. Strings take as
     * much again. */
    const uint64_t key_bytes = sizeof(struct keys_entry) + 2 * sizeof(struct keyed) +
                               (options->strings ? sizeof(*d->keys.checks) : 0);
    const uint64_t table_bytes = options->memory_bytes / (options->strings ? 3 : 1);
    d->arena_max = options->strings ? (size_t)(options->memory_bytes / 3) : 0;
    const size_t max = (size_t)(table_bytes / key_bytes);
    int rc = d->dir && keys_init(&d->keys, max, small_keys(options, max), options->strings) == 0
                 ? push_base(d, 0, err)
                 : drps_err_set(err, -ENOMEM, "no memory for the dictionary");
    if (rc < 0) {
        dict_close(d);
        return rc;
    }
    *d_out = d;
    return 0;
}

static void free_sorted(struct dict *d)
{
    drps_pages_free(d->sorted, d->keys.n * sizeof(*d->sorted));
    d->sorted = NULL;
}

/* Once all keys are placed, and at the end. */
static void free_table(struct dict *d)
{
    free_sorted(d);
    keys_destroy(&d->keys);
    free(d->arena);
    free(d->name_at);
    d->arena = NULL;
    d->name_at = NULL;
}

void dict_close(struct dict *d)
{
    if (!d) return;
    drps_io_close(d->io, d->map_fd);
    drps_pages_free(d->placed, d->placed_n * sizeof(*d->placed));
    free(d->map_path);
    free(d->dir);
    free_table(d);
    free(d->bases);
    free(d);
}

size_t dict_generations(const struct dict *d)
{
    return d->bases_n - 1; /* the last base was pushed by dict_place() */
}

uint32_t dict_base(const struct dict *d, size_t generation)
{
    return d->bases[generation];
}

static struct entry entry_of(const struct dict *d, const struct keyed *k, uint32_t base)
{
    const struct keys_entry *e = &d->keys.entries[k->number];
    return (struct entry){.key = e->key,
                          .mask = e->mask,
                          .first = e->first,
                          .count = e->count,
                          .id = base + k->number,
                          .check = d->keys.checks ? d->keys.checks[k->number] : 0};
}

/* One page of a run: u32 n | n entries | strings: n x (u32 offset of the end) and the names as in
 * the arena. */
static int write_page(struct dict *d, struct drps_recwriter *w, const struct keyed *sorted,
                      size_t n, uint32_t base, char **text, size_t *text_cap, struct drps_err *err)
{
    uint32_t head[2] = {(uint32_t)n, 0};
    struct entry entries[PAGE_ENTRIES];
    uint32_t ends[PAGE_ENTRIES];
    size_t bytes = 0;

    for (size_t i = 0; i < n; i++)
        entries[i] = entry_of(d, &sorted[i], base);
    for (size_t i = 0; d->options.strings && i < n; i++) {
        const char *name = d->arena + d->name_at[sorted[i].number];
        size_t name_bytes = NAME_HEAD + drps_get_u32(name + 2);
        if (drps_array_reserve(text, text_cap, bytes + name_bytes, 1))
            return drps_err_set(err, -ENOMEM, "no memory for the dictionary");
        memcpy(*text + bytes, name, name_bytes);
        bytes += name_bytes;
        ends[i] = (uint32_t)bytes;
    }
    struct drps_piece pieces[4] = {{head, sizeof(head)},
                                   {entries, n * sizeof(*entries)},
                                   {ends, n * sizeof(*ends)},
                                   {*text, bytes}};
    return drps_recwriter_add(w, pieces, d->options.strings ? 4 : 2, err);
}

static char *run_path(const struct dict *d, size_t generation)
{
    char *path;
    return asprintf(&path, "%s/names-%zu.run", d->dir, generation) < 0 ? NULL : path;
}

/* A stable radix sort by key, of the bytes in which keys differ; aux has room for n. */
static void sort_keys(struct keyed *keys, struct keyed *aux, size_t n)
{
    enum { RADIX = 256, BYTES = 8 };
    size_t count[BYTES][RADIX] = {{0}};
    struct keyed *from = keys, *to = aux;
    for (size_t i = 0; i < n; i++)
        for (unsigned b = 0; b < BYTES; b++)
            count[b][keys[i].key >> 8 * b & (RADIX - 1)]++;
    for (unsigned b = 0; n && b < BYTES; b++) {
        size_t *next = count[b], at = 0;
        if (next[keys[0].key >> 8 * b & (RADIX - 1)] == n) continue; /* they are all the same */
        for (size_t v = 0; v < RADIX; v++) {
            size_t c = next[v];
            next[v] = at;
            at += c;
        }
        for (size_t i = 0; i < n; i++)
            to[next[from[i].key >> 8 * b & (RADIX - 1)]++] = from[i];
        struct keyed *swap = from;
        from = to;
        to = swap;
    }
    if (from != keys) memcpy(keys, from, n * sizeof(*keys));
}

/* All keys are small: the array has them in order. */
static void list_small(struct dict *d)
{
    size_t listed = 0;
    for (uint64_t key = 0; listed < d->keys.n; key++)
        if (d->keys.small[key]) d->sorted[listed++] = (struct keyed){key, d->keys.small[key] - 1};
}

/* The keys sorted, in place of the table's lines. */
static int sort_table(struct dict *d, struct drps_err *err)
{
    const size_t n = d->keys.n;
    const int small = d->keys.small_used == n;
    keys_close_lines(&d->keys);
    if (!small) keys_close(&d->keys);
    struct keyed *aux = small ? NULL : drps_pages_new(n * sizeof(*aux));
    d->sorted = drps_pages_new(n * sizeof(*d->sorted));
    if ((!aux && !small) || !d->sorted) {
        drps_pages_free(aux, n * sizeof(*aux));
        return drps_err_set(err, -ENOMEM, "no memory to sort %zu names", n);
    }
    if (small) {
        list_small(d);
        keys_close(&d->keys);
        return 0;
    }
    for (size_t i = 0; i < n; i++)
        d->sorted[i] = (struct keyed){d->keys.entries[i].key, (uint32_t)i};
    sort_keys(d->sorted, aux, n);
    drps_pages_free(aux, n * sizeof(*aux));
    return 0;
}

/* Write the table as a run and start over with an empty one. */
static int end_generation(struct dict *d, struct drps_err *err)
{
    struct drps_recwriter *w = NULL;
    char *text = NULL;
    size_t text_cap = 0;
    uint32_t base = d->bases[d->bases_n - 1];
    char *path = run_path(d, d->bases_n - 1);

    if (!path) return drps_err_set(err, -ENOMEM, "no memory for the dictionary");
    const size_t n = d->keys.n;
    const uint32_t end = next_id(d);
    int rc = sort_table(d, err);
    if (rc == 0) rc = drps_recwriter_open(d->io, path, KIND_RUN, &w, err);
    for (size_t i = 0; rc == 0 && i < n; i += PAGE_ENTRIES) {
        size_t part = n - i < PAGE_ENTRIES ? n - i : PAGE_ENTRIES;
        rc = write_page(d, w, d->sorted + i, part, base, &text, &text_cap, err);
    }
    if (rc == 0) rc = drps_recwriter_finish(w, err);
    drps_recwriter_close(w);
    free(text);
    free(path);
    if (rc < 0) return rc;
    free_sorted(d);
    d->arena_n = 0;
    if (keys_reopen(&d->keys) < 0)
        return drps_err_set(err, -ENOMEM, "no memory for the dictionary");
    return push_base(d, end, err);
}

/* The only one stays in the table, from where it is placed. */
static int last_generation(struct dict *d, struct drps_err *err)
{
    int rc;
    if (d->bases_n == 1) {
        const uint32_t end = next_id(d);
        rc = sort_table(d, err);
        return rc < 0 ? rc : push_base(d, end, err);
    }
    rc = end_generation(d, err);
    free_table(d);
    return rc;
}

/* Make room for up to n new keys and `text` bytes of names. 1 when a generation ended. */
static int make_room(struct dict *d, size_t n, size_t text, struct drps_err *err)
{
    int ended = 0;
    struct keys *k = &d->keys;
    while (k->n + n > k->room || (d->arena_max && d->arena_n + text > d->arena_max && k->n)) {
        int rc = 0;
        const int full = k->n && d->arena_max && d->arena_n + text > d->arena_max;
        if (k->room < k->max && !full) {
            if (keys_grow(k) < 0)
                rc = drps_err_set(err, -ENOMEM, "no memory for a dictionary of %zu names",
                                  2 * k->room);
        } else if (k->n) {
            rc = end_generation(d, err);
            ended = 1;
        } else if (keys_raise(k, 2 * k->max) < 0) { /* one sample with more names than the table
                                                       holds: it is what it is */
            rc = drps_err_set(err, -ENOMEM, "no memory for a dictionary of %zu names", 2 * k->max);
        }
        if (rc < 0) return rc;
    }
    return ended;
}

static int keep_name(struct dict *d, const struct drps_name *name, size_t number,
                     struct drps_err *err)
{
    uint16_t field = (uint16_t)name->field;
    if (drps_array_reserve(&d->name_at, &d->name_cap, number + 1, sizeof(*d->name_at)) ||
        drps_array_reserve(&d->arena, &d->arena_cap, d->arena_n + NAME_HEAD + name->bytes, 1))
        return drps_err_set(err, -ENOMEM, "no memory for the dictionary's names");
    char *to = d->arena + d->arena_n;
    memcpy(to, &field, 2);
    drps_put_u32(to + 2, name->bytes);
    memcpy(to + NAME_HEAD, name->text, name->bytes);
    d->name_at[number] = d->arena_n;
    d->keys.checks[number] = name->check;
    d->arena_n += NAME_HEAD + name->bytes;
    return 0;
}

static int collision(const struct drps_name *name, const struct dict *d, struct drps_err *err)
{
    return drps_err_set(err, DRPS_E_CONFIG,
                        "two feature names share the 64-bit key of '%.*s': run again with another "
                        "--hash-seed than %" PRIu64,
                        (int)(name->bytes < 60 ? name->bytes : 60), name->text,
                        d->options.hash_seed);
}

/* Of keys with these numbers, of which those from `known` on are new. */
static int keep_names(struct dict *d, const struct drps_name *names, size_t n, size_t known,
                      const uint32_t *numbers, struct drps_err *err)
{
    for (size_t j = 0; j < n; j++) {
        if (numbers[j] == known) {
            int rc = keep_name(d, &names[j], known++, err);
            if (rc < 0) return rc;
        } else if (d->keys.checks[numbers[j]] != names[j].check) {
            return collision(&names[j], d, err);
        }
    }
    return 0;
}

/* A training sample at `time` has the keys of these numbers. */
static void count_uses(struct keys_entry *entries, const uint32_t *numbers, size_t n, uint32_t time)
{
    const uint16_t bit = (uint16_t)(1u << time / (DICT_TIMES / DICT_SEGMENTS));
    for (size_t j = 0; j < n; j++) {
        struct keys_entry *e = &entries[numbers[j]];
        e->mask |= bit;
        e->first = time < e->first ? (uint16_t)time : e->first;
        e->count += e->count != UINT32_MAX;
    }
}

static size_t text_bytes(const struct drps_name *names, size_t n)
{
    size_t sum = 0;
    for (size_t j = 0; j < n; j++)
        sum += NAME_HEAD + names[j].bytes;
    return sum;
}

int dict_add(struct dict *d, const struct drps_samples *s, size_t first, size_t last, uint32_t time,
             uint32_t *ids_out, struct drps_err *err)
{
    struct keys *k = &d->keys;
    const size_t n = last - first;
    const size_t text = d->options.strings ? text_bytes(s->names + first, n) : 0;
    int ended = 0;
    if (n >= DRPS_NO_ROW - next_id(d))
        return drps_err_set(
            err, DRPS_E_CONFIG,
            "more than 4,294,967,294 feature names: use a data set with fewer, or more --memory");
    if (k->n + n > k->room || d->arena_n + text > d->arena_max) {
        ended = make_room(d, n, text, err);
        if (ended < 0) return ended;
    }
    const size_t known = k->n;
    keys_add(k, s->keys, first, last, s->starts[s->n], ids_out);
    if (d->options.strings) {
        int rc = keep_names(d, s->names + first, n, known, ids_out, err);
        if (rc < 0) return rc;
    }
    if (time != DICT_TEST) count_uses(k->entries, ids_out, n, time);
    const uint32_t base = d->bases[d->bases_n - 1];
    for (size_t j = 0; base && j < n; j++)
        ids_out[j] += base;
    return ended;
}

/* ---- Merging the runs ---- */

/* One run being read a page at a time. */
struct run {
    struct drps_recfile *file;
    uint64_t page;
    char *data;
    size_t cap;
    size_t n, at; /* entries of the page, next one */
};

struct merge {
    struct dict *d;
    struct run *runs;
    size_t n;
};

/* A key with all its provisional ids. */
struct merged {
    uint64_t key;
    uint32_t mask, first, count, check;
    unsigned field;
    const char *text; /* borrowed until the next merge_next() */
    size_t bytes;
    uint32_t *ids; /* one a generation that has the key */
    size_t ids_n;
};

static uint64_t run_key(const struct run *r)
{
    return drps_get_u64(r->data + 8 + r->at * sizeof(struct entry));
}

static struct entry run_entry(const struct run *r)
{
    struct entry e;
    memcpy(&e, r->data + 8 + r->at * sizeof(e), sizeof(e));
    return e;
}

static const char *run_name(const struct run *r)
{
    const char *ends = r->data + 8 + r->n * sizeof(struct entry);
    const char *names = ends + 4 * r->n;
    return names + (r->at ? drps_get_u32(ends + 4 * (r->at - 1)) : 0);
}

/* Make run_entry() valid; n stays 0 at the end of the run. */
static int run_load(struct run *r, struct drps_err *err)
{
    r->n = r->at = 0;
    if (r->page == drps_recfile_count(r->file)) return 0;
    size_t bytes = (size_t)drps_recfile_run_bytes(r->file, r->page, 1);
    if (drps_array_reserve(&r->data, &r->cap, bytes, 1))
        return drps_err_set(err, -ENOMEM, "no memory for merging names");
    int rc = drps_recfile_read(r->file, r->page, 1, r->data, err);
    if (rc < 0) return rc;
    r->page++;
    r->n = drps_get_u32(r->data);
    return 0;
}

static void merge_close(struct merge *m)
{
    for (size_t i = 0; m->runs && i < m->n; i++) {
        drps_recfile_close(m->runs[i].file);
        free(m->runs[i].data);
    }
    free(m->runs);
    m->runs = NULL;
}

static int merge_open(struct dict *d, struct merge *m, struct drps_err *err)
{
    m->d = d;
    m->n = dict_generations(d);
    m->runs = calloc(m->n ? m->n : 1, sizeof(*m->runs));
    if (!m->runs) return drps_err_set(err, -ENOMEM, "no memory for merging names");
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < m->n; i++) {
        char *path = run_path(d, i);
        if (!path) rc = drps_err_set(err, -ENOMEM, "no memory for merging names");
        if (rc == 0) rc = drps_recfile_open(d->io, path, KIND_RUN, &m->runs[i].file, err);
        if (rc == 0) rc = run_load(&m->runs[i], err);
        free(path);
    }
    return rc;
}

/* The next key of all runs: 1, or 0 at the end. out->ids has room for one id a run. */
static int merge_next(struct merge *m, struct merged *out, struct drps_err *err)
{
    int found = 0;
    for (size_t i = 0; i < m->n; i++) {
        if (!m->runs[i].n) continue;
        uint64_t key = run_key(&m->runs[i]);
        if (!found || key < out->key) out->key = key;
        found = 1;
    }
    if (!found) return 0;
    out->mask = out->count = 0;
    out->first = DICT_TIMES - 1;
    out->ids_n = 0;
    for (size_t i = 0; i < m->n; i++) {
        struct run *r = &m->runs[i];
        if (!r->n || run_key(r) != out->key) continue;
        const struct entry e = run_entry(r);
        out->mask |= e.mask;
        if (e.first < out->first) out->first = e.first;
        out->count = out->count + e.count < out->count ? UINT32_MAX : out->count + e.count;
        if (out->ids_n && e.check != out->check) {
            struct drps_name name = {.text = out->text, .bytes = (uint32_t)out->bytes};
            return collision(&name, m->d, err);
        }
        out->check = e.check;
        out->ids[out->ids_n++] = e.id;
        if (m->d->options.strings) {
            const char *name = run_name(r);
            uint16_t field;
            memcpy(&field, name, 2);
            out->field = field;
            out->bytes = drps_get_u32(name + 2);
            out->text = name + NAME_HEAD;
        }
    }
    return 1;
}

/* Step past the key that merge_next() gave; its text is gone then. */
static int merge_skip(struct merge *m, const struct merged *at, struct drps_err *err)
{
    for (size_t i = 0; i < m->n; i++) {
        struct run *r = &m->runs[i];
        if (!r->n || run_key(r) != at->key) continue;
        if (++r->at < r->n) continue;
        int rc = run_load(r, err);
        if (rc < 0) return rc;
    }
    return 0;
}

/* ---- Placing ---- */

/*
 * The placed order: table; rows of all segments first, by falling count; then by falling number of
 * segments, equal patterns together, by first use, by falling count. Ties by key. So a page of rows
 * is in use in few stretches of the epoch, and rows of one batch alone lie together.
 */
static uint64_t place_key(unsigned table, uint32_t mask, uint32_t first, uint32_t count)
{
    enum { COUNT_BITS = 24 };
    const unsigned cold = DICT_SEGMENTS - (unsigned)__builtin_popcount(mask);
    const uint32_t most = (1u << COUNT_BITS) - 1;
    const uint32_t rank = most - (count < most ? count : most);
    const uint32_t middle = cold ? mask << 16 | first : UINT32_MAX - count;
    return (uint64_t)table << 62 | (uint64_t)cold << 56 | (uint64_t)middle << COUNT_BITS | rank;
}

/* A number for each of 0 .. n - 1, given in any order and taken in turn: an array, or sorted when
 * that takes too much memory. */
struct scatter {
    uint64_t n, taken;
    uint32_t *array; /* [n], or NULL */
    struct extsort *sort;
    const struct sort_record *next; /* of sort; NULL at the end */
};

static int scatter_open(const struct dict *d, const char *name, uint64_t n, uint64_t memory_bytes,
                        struct scatter *s, struct drps_err *err)
{
    *s = (struct scatter){.n = n};
    if (n > memory_bytes / sizeof(*s->array))
        return extsort_open(d->io, d->dir, name, memory_bytes, &s->sort, err);
    s->array = drps_pages_new(n * sizeof(*s->array));
    if (!s->array) return drps_err_set(err, -ENOMEM, "no memory for placing");
    memset(s->array, 0xff, n * sizeof(*s->array)); /* DRPS_NO_ROW */
    return 0;
}

static void scatter_close(struct scatter *s)
{
    drps_pages_free(s->array, s->n * sizeof(*s->array));
    extsort_close(s->sort);
    *s = (struct scatter){0};
}

static int scatter_put(struct scatter *s, uint64_t i, uint32_t value, struct drps_err *err)
{
    const struct sort_record r = {.hi = i, .a = value};
    if (!s->array) return extsort_add(s->sort, &r, err);
    s->array[i] = value;
    return 0;
}

static int scatter_finish(struct scatter *s, struct drps_err *err)
{
    int rc = s->array ? 0 : extsort_finish(s->sort, err);
    if (rc == 0 && !s->array) rc = extsort_next(s->sort, &s->next, err);
    return rc < 0 ? rc : 0;
}

/* The next one's; DRPS_NO_ROW if none was given. */
static int scatter_next(struct scatter *s, uint32_t *value_out, struct drps_err *err)
{
    const uint64_t i = s->taken++;
    *value_out = DRPS_NO_ROW;
    if (s->array) {
        *value_out = s->array[i];
        return 0;
    }
    if (!s->next || s->next->hi != i) return 0;
    *value_out = s->next->a;
    int rc = extsort_next(s->sort, &s->next, err);
    return rc < 0 ? rc : 0;
}

struct placing {
    struct dict *d;
    struct extsort *by_place; /* place key -> number of the key in key order */
    struct scatter by_key;    /* number of the key -> placed id */
    struct scatter by_id;     /* provisional id -> placed id */
};

static unsigned table_of(const struct dict *d, unsigned field)
{
    return d->options.table_by_field && field ? 1 : 0;
}

static uint64_t place_of(const struct dict *d, unsigned table, uint64_t key, uint32_t mask,
                         uint32_t first, uint32_t count)
{
    if (d->options.by_hash) return (uint64_t)table << 62 | grid_place(d->options.order_seed, key);
    return place_key(table, mask, first, count);
}

static int collect_places(struct placing *p, uint64_t rows_out[2], struct drps_err *err)
{
    struct merge m = {0};
    struct merged at = {.ids = drps_array_new(dict_generations(p->d) + 1, sizeof(uint32_t))};
    uint64_t number = 0;
    int rc =
        at.ids ? merge_open(p->d, &m, err) : drps_err_set(err, -ENOMEM, "no memory for placing");

    while (rc == 0 && (rc = merge_next(&m, &at, err)) > 0) {
        if (at.count) {
            /* Ties by key: keys come in their order, which the sort keeps. */
            const unsigned table = table_of(p->d, at.field);
            struct sort_record r = {.hi =
                                        place_of(p->d, table, at.key, at.mask, at.first, at.count),
                                    .a = (uint32_t)number};
            rows_out[table]++;
            rc = extsort_add(p->by_place, &r, err);
        } else {
            rc = 0;
        }
        number++;
        if (rc == 0) rc = merge_skip(&m, &at, err);
    }
    merge_close(&m);
    free(at.ids);
    return rc;
}

static int too_many_rows(struct drps_err *err)
{
    return drps_err_set(err, DRPS_E_CONFIG,
                        "more than 4,294,967,294 rows: use a data set with fewer features");
}

static int number_places(struct placing *p, uint32_t first_row, struct drps_err *err)
{
    const struct sort_record *r;
    uint64_t placed = first_row;
    int rc = extsort_finish(p->by_place, err);
    while (rc == 0 && (rc = extsort_next(p->by_place, &r, err)) > 0) {
        if (placed >= DRPS_NO_ROW) return too_many_rows(err);
        rc = scatter_put(&p->by_key, r->a, (uint32_t)placed++, err);
    }
    return rc;
}

/* Walk the keys once more beside their placed ids: the final dictionary, and placed ids by
 * provisional id. */
static int write_names(struct placing *p, const char *plan_dir, struct drps_err *err)
{
    struct merge m = {0};
    struct names_writer *w = NULL;
    struct merged at = {.ids = drps_array_new(dict_generations(p->d) + 1, sizeof(uint32_t))};
    uint32_t row;
    int rc = at.ids ? scatter_finish(&p->by_key, err)
                    : drps_err_set(err, -ENOMEM, "no memory for placing");

    if (rc == 0) rc = names_writer_open(p->d->io, plan_dir, p->d->options.strings, &w, err);
    if (rc == 0) rc = merge_open(p->d, &m, err);
    while (rc == 0 && (rc = merge_next(&m, &at, err)) > 0) {
        rc = scatter_next(&p->by_key, &row, err);
        if (rc == 0 && row != DRPS_NO_ROW)
            rc = names_writer_add(w, at.key, row, at.field, at.text, at.bytes, err);
        for (size_t i = 0; rc == 0 && i < at.ids_n; i++)
            rc = scatter_put(&p->by_id, at.ids[i], row, err);
        if (rc == 0) rc = merge_skip(&m, &at, err);
    }
    if (rc == 0) rc = names_writer_finish(w, err);
    names_writer_close(w);
    merge_close(&m);
    free(at.ids);
    return rc;
}

static int write_map(struct placing *p, struct drps_err *err)
{
    enum { PART = 1 << 16 };
    struct dict *d = p->d;
    uint32_t *part = drps_array_new(PART, sizeof(*part));
    int rc =
        part ? scatter_finish(&p->by_id, err) : drps_err_set(err, -ENOMEM, "no memory for placing");

    if (rc == 0 && asprintf(&d->map_path, "%s/map", d->dir) < 0) {
        d->map_path = NULL;
        rc = drps_err_set(err, -ENOMEM, "no memory for placing");
    }
    if (rc == 0) rc = drps_io_open(d->io, d->map_path, O_RDWR | O_CREAT | O_TRUNC, &d->map_fd, err);
    for (uint64_t done = 0, n; rc == 0 && done < dict_base(d, dict_generations(d)); done += n) {
        n = dict_base(d, dict_generations(d)) - done < PART
                ? dict_base(d, dict_generations(d)) - done
                : PART;
        for (uint64_t i = 0; rc == 0 && i < n; i++)
            rc = scatter_next(&p->by_id, &part[i], err);
        if (rc == 0)
            rc = drps_io_write_at(d->io, d->map_fd, part, n * sizeof(*part), done * sizeof(*part),
                                  d->map_path, err);
    }
    free(part);
    return rc;
}

static int place_runs(struct dict *d, const char *plan_dir, uint32_t first_row,
                      uint64_t rows_out[2], struct drps_err *err)
{
    struct placing p = {.d = d};
    uint64_t share = d->options.memory_bytes / 3;

    int rc = extsort_open(d->io, d->dir, "place", share, &p.by_place, err);
    if (rc == 0)
        rc = scatter_open(d, "key", dict_base(d, dict_generations(d)), share, &p.by_key, err);
    if (rc == 0) rc = collect_places(&p, rows_out, err);
    if (rc == 0) rc = number_places(&p, first_row, err);
    extsort_close(p.by_place);
    if (rc == 0)
        rc = scatter_open(d, "id", dict_base(d, dict_generations(d)), share, &p.by_id, err);
    if (rc == 0) rc = write_names(&p, plan_dir, err);
    scatter_close(&p.by_key);
    if (rc == 0) rc = write_map(&p, err);
    scatter_close(&p.by_id);
    return rc;
}

/* ---- Placing a single generation ---- */

/* Of the key with this number. */
static struct drps_name name_in_arena(const struct dict *d, uint32_t number)
{
    uint16_t field;
    if (!d->options.strings) return (struct drps_name){0};
    const char *name = d->arena + d->name_at[number];
    memcpy(&field, name, sizeof(field));
    return (struct drps_name){
        .field = field, .bytes = drps_get_u32(name + 2), .text = name + NAME_HEAD};
}

/* The places of all keys that training touches, as keys, in the order of keys; returns how many. */
static size_t list_places(const struct dict *d, struct keyed *places, uint64_t rows_out[2])
{
    const size_t n = d->keys.n;
    size_t listed = 0;
    for (size_t i = 0; i < n; i++) {
        if (i + AHEAD < n) __builtin_prefetch(&d->keys.entries[d->sorted[i + AHEAD].number]);
        const uint32_t number = d->sorted[i].number;
        const struct keys_entry *e = &d->keys.entries[number];
        if (!e->count) continue;
        const unsigned table =
            d->options.table_by_field ? table_of(d, name_in_arena(d, number).field) : 0;
        places[listed++] =
            (struct keyed){place_of(d, table, e->key, e->mask, e->first, e->count), number};
        rows_out[table]++;
    }
    return listed;
}

static int map_table(struct dict *d, uint32_t first_row, uint64_t rows_out[2], struct drps_err *err)
{
    const size_t n = d->keys.n;
    struct keyed *places = drps_pages_new(n * sizeof(*places));
    struct keyed *aux = drps_pages_new(n * sizeof(*aux));
    int rc = 0;
    d->placed = drps_pages_new(n * sizeof(*d->placed));
    d->placed_n = n;
    if (places && aux && d->placed) {
        const size_t rows = list_places(d, places, rows_out);
        if (rows > DRPS_NO_ROW - first_row) rc = too_many_rows(err);
        sort_keys(places, aux, rows);                    /* ties stay in the order of keys */
        memset(d->placed, 0xff, n * sizeof(*d->placed)); /* DRPS_NO_ROW */
        for (size_t i = 0; i < rows; i++)
            d->placed[places[i].number] = first_row + (uint32_t)i;
    } else {
        rc = drps_err_set(err, -ENOMEM, "no memory for placing");
    }
    drps_pages_free(places, n * sizeof(*places));
    drps_pages_free(aux, n * sizeof(*aux));
    return rc;
}

static int write_table_names(struct dict *d, const char *plan_dir, struct drps_err *err)
{
    const size_t n = d->keys.n;
    struct names_writer *w = NULL;
    int rc = names_writer_open(d->io, plan_dir, d->options.strings, &w, err);
    for (size_t i = 0; i < n && rc == 0; i++) {
        if (i + AHEAD < n) __builtin_prefetch(&d->placed[d->sorted[i + AHEAD].number]);
        const uint32_t number = d->sorted[i].number;
        if (d->placed[number] == DRPS_NO_ROW) continue;
        const struct drps_name name = name_in_arena(d, number);
        rc = names_writer_add(w, d->sorted[i].key, d->placed[number], name.field, name.text,
                              name.bytes, err);
    }
    if (rc == 0) rc = names_writer_finish(w, err);
    names_writer_close(w);
    return rc;
}

/* As place_runs(), from the table. What it takes beside the table's half of the run's memory, 36
 * bytes a key, is less than what reading has given back. */
static int place_table(struct dict *d, const char *plan_dir, uint32_t first_row,
                       uint64_t rows_out[2], struct drps_err *err)
{
    int rc = map_table(d, first_row, rows_out, err);
    return rc < 0 ? rc : write_table_names(d, plan_dir, err);
}

int dict_place(struct dict *d, const char *plan_dir, uint32_t first_row, uint64_t rows_out[2],
               struct drps_err *err)
{
    rows_out[0] = rows_out[1] = 0;
    int rc = last_generation(d, err);
    if (rc == 0)
        rc = d->sorted ? place_table(d, plan_dir, first_row, rows_out, err)
                       : place_runs(d, plan_dir, first_row, rows_out, err);
    free_table(d);
    return rc;
}

const uint32_t *dict_placed(const struct dict *d)
{
    return d->placed;
}

int dict_map(struct dict *d, size_t generation, uint32_t *map_out, struct drps_err *err)
{
    uint64_t from = dict_base(d, generation);
    size_t n = dict_base(d, generation + 1) - (size_t)from;
    if (d->placed) {
        memcpy(map_out, d->placed, n * sizeof(*map_out));
        return 0;
    }
    return drps_io_read_at(d->io, d->map_fd, map_out, n * sizeof(*map_out), from * sizeof(*map_out),
                           d->map_path, err);
}
