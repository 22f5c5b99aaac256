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
#include "base/drps_rng.h"
#include "index/drps_names.h"
#include "index/extsort.h"
#include "index/grid.h"
#include "index/names.h"

#define KIND_RUN DRPS_REC_KIND('R', 'U', 'N', '0')

enum { FIRST_SLOTS = 1 << 14, PAGE_ENTRIES = 4096, AHEAD = 40 };

/* Of the table; small, since look-ups are random. */
struct slot {
    uint64_t key;
    uint32_t id;    /* DRPS_NO_ROW: the slot is empty */
    uint32_t check; /* strings: more bits of the hash */
};

/* Of a provisional id, in the order of ids: what is hot came early and lies together. */
struct use {
    uint16_t mask;  /* segments of training samples that touch the key */
    uint16_t first; /* when the first of these comes; DICT_TIMES - 1: last, or never */
    uint32_t count; /* training samples that touch it, saturating */
};

/* Of a run. */
struct entry {
    uint64_t key;
    struct use use;
    uint32_t id, check;
};

/* A name's string in the arena: u16 field | u32 bytes | text. */
enum { NAME_HEAD = 6 };

struct dict {
    const struct drps_io *io;
    char *dir;
    struct dict_options options;

    struct slot *slots;
    size_t slots_n, slots_max;
    struct use *uses;      /* [used_max] by id - base */
    size_t used, used_max; /* of the table as it is */
    uint32_t next_id;

    char *arena; /* strings of this generation, in order of id */
    size_t arena_n, arena_cap, arena_max;
    uint64_t *name_at; /* [used] offset in the arena by id - base */
    size_t name_cap;

    uint32_t *bases; /* [generations + 1] */
    size_t bases_n, bases_cap;

    int map_fd; /* placed ids by provisional id, u32 each */
    char *map_path;
};

static struct slot *slots_new(size_t n)
{
    struct slot *slots = drps_pages_new(n * sizeof(*slots)); /* huge pages: look-ups are random */
    if (slots) memset(slots, 0xff, n * sizeof(*slots));      /* id = DRPS_NO_ROW: empty */
    return slots;
}

static int push_base(struct dict *d, struct drps_err *err)
{
    if (drps_array_reserve(&d->bases, &d->bases_cap, d->bases_n + 1, sizeof(*d->bases)))
        return drps_err_set(err, -ENOMEM, "no memory for the dictionary");
    d->bases[d->bases_n++] = d->next_id;
    return 0;
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
    /* Growing holds the old table and its uses beside the new ones, twice as large; sorting holds
     * two tables. Strings take as much again. */
    uint64_t table_bytes = options->memory_bytes / (options->strings ? 3 : 1) / 3 * 2;
    d->slots_max = (size_t)(table_bytes / (sizeof(struct slot) + sizeof(struct use)));
    if (d->slots_max < FIRST_SLOTS) d->slots_max = FIRST_SLOTS;
    d->arena_max = options->strings ? (size_t)(options->memory_bytes / 3) : 0;
    d->slots_n = FIRST_SLOTS;
    d->used_max = d->slots_n / 4 * 3;
    d->slots = slots_new(d->slots_n);
    d->uses = drps_pages_new(d->used_max * sizeof(*d->uses));
    int rc = d->dir && d->slots && d->uses
                 ? push_base(d, err)
                 : drps_err_set(err, -ENOMEM, "no memory for the dictionary");
    if (rc < 0) {
        dict_close(d);
        return rc;
    }
    *d_out = d;
    return 0;
}

/* Once all keys are placed, and at the end. */
static void free_table(struct dict *d)
{
    drps_pages_free(d->slots, d->slots_n * sizeof(*d->slots));
    drps_pages_free(d->uses, d->used_max * sizeof(*d->uses));
    free(d->arena);
    free(d->name_at);
    d->slots = NULL;
    d->uses = NULL;
    d->arena = NULL;
    d->name_at = NULL;
}

void dict_close(struct dict *d)
{
    if (!d) return;
    drps_io_close(d->io, d->map_fd);
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

/* The home of a key: its hash scaled to the table's size, which need not be a power of two. */
static size_t home(uint64_t key, size_t slots_n)
{
    return (size_t)(((__uint128_t)drps_mix64(key) * slots_n) >> 64);
}

/* Homes are in the order of hashes: the old table is read, and the new one filled, nearly in turn.
 */
static int grow(struct dict *d, struct drps_err *err)
{
    size_t n = d->slots_n * 2 < d->slots_max ? d->slots_n * 2 : d->slots_max;
    size_t used_max = n / 4 * 3;
    struct slot *slots = slots_new(n);
    struct use *uses = drps_pages_new(used_max * sizeof(*uses));
    if (!slots || !uses) {
        drps_pages_free(slots, n * sizeof(*slots));
        drps_pages_free(uses, used_max * sizeof(*uses));
        return drps_err_set(err, -ENOMEM, "no memory for a dictionary of %zu names", n);
    }
    for (size_t i = 0; i < d->slots_n; i++) {
        if (d->slots[i].id == DRPS_NO_ROW) continue;
        size_t at = home(d->slots[i].key, n);
        while (slots[at].id != DRPS_NO_ROW)
            at = at + 1 == n ? 0 : at + 1;
        slots[at] = d->slots[i];
    }
    memcpy(uses, d->uses, d->used * sizeof(*uses));
    drps_pages_free(d->slots, d->slots_n * sizeof(*d->slots));
    drps_pages_free(d->uses, d->used_max * sizeof(*d->uses));
    d->slots = slots;
    d->uses = uses;
    d->slots_n = n;
    d->used_max = used_max;
    return 0;
}

static struct entry entry_of(const struct dict *d, const struct slot *slot, uint32_t base)
{
    return (struct entry){slot->key, d->uses[slot->id - base], slot->id, slot->check};
}

/* One page of a run: u32 n | n entries | strings: n x (u32 offset of the end) and the names as in
 * the arena. */
static int write_page(struct dict *d, struct drps_recwriter *w, const struct slot *slots, size_t n,
                      uint32_t base, char **text, size_t *text_cap, struct drps_err *err)
{
    uint32_t head[2] = {(uint32_t)n, 0};
    struct entry entries[PAGE_ENTRIES];
    uint32_t ends[PAGE_ENTRIES];
    size_t bytes = 0;

    for (size_t i = 0; i < n; i++)
        entries[i] = entry_of(d, &slots[i], base);
    for (size_t i = 0; d->options.strings && i < n; i++) {
        const char *name = d->arena + d->name_at[slots[i].id - base];
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

/* A radix sort by key, of the bytes in which keys differ; aux has room for n. */
static void sort_slots(struct slot *slots, struct slot *aux, size_t n)
{
    enum { RADIX = 256 };
    struct slot *from = slots, *to = aux;
    uint64_t differ = 0;
    for (size_t i = 1; i < n; i++)
        differ |= slots[i].key ^ slots[0].key;
    for (unsigned shift = 0; shift < 64; shift += 8) {
        size_t count[RADIX] = {0}, at = 0;
        if (!(differ >> shift & (RADIX - 1))) continue;
        for (size_t i = 0; i < n; i++)
            count[from[i].key >> shift & (RADIX - 1)]++;
        for (size_t v = 0; v < RADIX; v++) {
            size_t c = count[v];
            count[v] = at;
            at += c;
        }
        for (size_t i = 0; i < n; i++)
            to[count[from[i].key >> shift & (RADIX - 1)]++] = from[i];
        struct slot *swap = from;
        from = to;
        to = swap;
    }
    if (from != slots) memcpy(slots, from, n * sizeof(*slots));
}

/* The used slots, sorted by key, at the front of the table. */
static int compact(struct dict *d, struct drps_err *err)
{
    size_t n = 0;
    for (size_t i = 0; i < d->slots_n; i++)
        if (d->slots[i].id != DRPS_NO_ROW) d->slots[n++] = d->slots[i];
    struct slot *aux = drps_pages_new(n * sizeof(*aux));
    if (!aux) return drps_err_set(err, -ENOMEM, "no memory to sort %zu names", n);
    sort_slots(d->slots, aux, n);
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
    size_t n = d->used;
    int rc = compact(d, err);
    if (rc == 0) rc = drps_recwriter_open(d->io, path, KIND_RUN, &w, err);
    for (size_t i = 0; rc == 0 && i < n; i += PAGE_ENTRIES) {
        size_t part = n - i < PAGE_ENTRIES ? n - i : PAGE_ENTRIES;
        rc = write_page(d, w, d->slots + i, part, base, &text, &text_cap, err);
    }
    if (rc == 0) rc = drps_recwriter_finish(w, err);
    drps_recwriter_close(w);
    free(text);
    free(path);
    if (rc < 0) return rc;
    memset(d->slots, 0xff, d->slots_n * sizeof(*d->slots));
    d->used = 0;
    d->arena_n = 0;
    return push_base(d, err);
}

/* The only one stays in the table, from where it is placed. */
static int last_generation(struct dict *d, struct drps_err *err)
{
    int rc;
    if (d->bases_n == 1) {
        rc = compact(d, err);
        return rc < 0 ? rc : push_base(d, err);
    }
    rc = end_generation(d, err);
    free_table(d);
    return rc;
}

/* Make room for up to n new keys and `text` bytes of names. 1 when a generation ended. */
static int make_room(struct dict *d, size_t n, size_t text, struct drps_err *err)
{
    int ended = 0;
    while (d->used + n > d->used_max ||
           (d->arena_max && d->arena_n + text > d->arena_max && d->used)) {
        int rc = 0;
        int full = d->used && d->arena_max && d->arena_n + text > d->arena_max;
        if (d->slots_n < d->slots_max && !full) {
            rc = grow(d, err);
        } else if (d->used) {
            rc = end_generation(d, err);
            ended = 1;
        } else { /* one sample with more names than the table holds: it is what it is */
            d->slots_max *= 2;
        }
        if (rc < 0) return rc;
    }
    return ended;
}

static int keep_name(struct dict *d, const struct drps_name *name, uint32_t id,
                     struct drps_err *err)
{
    uint16_t field = (uint16_t)name->field;
    size_t at = id - d->bases[d->bases_n - 1];
    if (drps_array_reserve(&d->name_at, &d->name_cap, at + 1, sizeof(*d->name_at)) ||
        drps_array_reserve(&d->arena, &d->arena_cap, d->arena_n + NAME_HEAD + name->bytes, 1))
        return drps_err_set(err, -ENOMEM, "no memory for the dictionary's names");
    char *to = d->arena + d->arena_n;
    memcpy(to, &field, 2);
    drps_put_u32(to + 2, name->bytes);
    memcpy(to + NAME_HEAD, name->text, name->bytes);
    d->name_at[at] = d->arena_n;
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

/* Find the slot of a key, or the empty one where it belongs. */
static struct slot *find(struct dict *d, uint64_t key)
{
    size_t at = home(key, d->slots_n);
    while (d->slots[at].id != DRPS_NO_ROW && d->slots[at].key != key)
        at = at + 1 == d->slots_n ? 0 : at + 1;
    return &d->slots[at];
}

static int find_id(struct dict *d, const struct drps_samples *s, size_t j, uint32_t base,
                   uint32_t *id_out, struct drps_err *err)
{
    struct slot *slot = find(d, s->keys[j]);
    const struct drps_name *name = d->options.strings ? &s->names[j] : NULL;
    if (slot->id == DRPS_NO_ROW) {
        *slot =
            (struct slot){.key = s->keys[j], .id = d->next_id++, .check = name ? name->check : 0};
        d->uses[slot->id - base] = (struct use){.first = DICT_TIMES - 1};
        d->used++;
        int rc = name ? keep_name(d, name, slot->id, err) : 0;
        if (rc < 0) return rc;
    } else if (name && slot->check != name->check) {
        return collision(name, d, err);
    }
    __builtin_prefetch(&d->uses[slot->id - base], 1);
    *id_out = slot->id;
    return 0;
}

int dict_add(struct dict *d, const struct drps_samples *s, size_t first, size_t last, uint32_t time,
             uint32_t *ids_out, struct drps_err *err)
{
    size_t text = 0;
    if (d->options.strings)
        for (size_t j = first; j < last; j++)
            text += NAME_HEAD + s->names[j].bytes;
    int ended = 0;
    if (last - first >= DRPS_NO_ROW - d->next_id)
        return drps_err_set(
            err, DRPS_E_CONFIG,
            "more than 4,294,967,294 feature names: use a data set with fewer, or more --memory");
    if (d->used + (last - first) > d->used_max || d->arena_n + text > d->arena_max) {
        ended = make_room(d, last - first, text, err);
        if (ended < 0) return ended;
    }
    const uint32_t base = d->bases[d->bases_n - 1];
    for (size_t j = first; j < last; j++) {
        if (j + AHEAD < s->starts[s->n])
            __builtin_prefetch(&d->slots[home(s->keys[j + AHEAD], d->slots_n)], 1);
        int rc = find_id(d, s, j, base, &ids_out[j - first], err);
        if (rc < 0) return rc;
    }
    if (time == DICT_TEST) return ended;
    const uint16_t bit = (uint16_t)(1u << time / (DICT_TIMES / DICT_SEGMENTS));
    for (size_t j = 0; j < last - first; j++) {
        struct use *use = &d->uses[ids_out[j] - base];
        use->mask |= bit;
        if (time < use->first) use->first = (uint16_t)time;
        use->count += use->count != UINT32_MAX;
    }
    return ended;
}

/* ---- Merging the runs ---- */

/* One run being read a page at a time, or the table itself, sorted, when it was the only one. */
struct run {
    struct drps_recfile *file; /* NULL: the table */
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

static uint64_t run_key(const struct dict *d, const struct run *r)
{
    return r->file ? drps_get_u64(r->data + 8 + r->at * sizeof(struct entry)) : d->slots[r->at].key;
}

static struct entry run_entry(const struct dict *d, const struct run *r)
{
    struct entry e;
    if (!r->file) {
        const size_t ahead = r->at + AHEAD < r->n ? r->at + AHEAD : r->at;
        __builtin_prefetch(&d->uses[d->slots[ahead].id - d->bases[0]]);
        return entry_of(d, &d->slots[r->at], d->bases[0]);
    }
    memcpy(&e, r->data + 8 + r->at * sizeof(e), sizeof(e));
    return e;
}

static const char *run_name(const struct dict *d, const struct run *r)
{
    if (!r->file) return d->arena + d->name_at[d->slots[r->at].id - d->bases[0]];
    const char *ends = r->data + 8 + r->n * sizeof(struct entry);
    const char *names = ends + 4 * r->n;
    return names + (r->at ? drps_get_u32(ends + 4 * (r->at - 1)) : 0);
}

/* Make run_entry() valid; n stays 0 at the end of the run. */
static int run_load(struct run *r, struct drps_err *err)
{
    r->n = r->at = 0;
    if (!r->file || r->page == drps_recfile_count(r->file)) return 0;
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
    if (d->slots) m->runs[0].n = d->used;
    int rc = 0;
    for (size_t i = 0; rc == 0 && !d->slots && i < m->n; i++) {
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
        uint64_t key = run_key(m->d, &m->runs[i]);
        if (!found || key < out->key) out->key = key;
        found = 1;
    }
    if (!found) return 0;
    out->mask = out->count = 0;
    out->first = DICT_TIMES - 1;
    out->ids_n = 0;
    for (size_t i = 0; i < m->n; i++) {
        struct run *r = &m->runs[i];
        if (!r->n || run_key(m->d, r) != out->key) continue;
        const struct entry e = run_entry(m->d, r);
        out->mask |= e.use.mask;
        if (e.use.first < out->first) out->first = e.use.first;
        out->count = out->count + e.use.count < out->count ? UINT32_MAX : out->count + e.use.count;
        if (out->ids_n && e.check != out->check) {
            struct drps_name name = {.text = out->text, .bytes = (uint32_t)out->bytes};
            return collision(&name, m->d, err);
        }
        out->check = e.check;
        out->ids[out->ids_n++] = e.id;
        if (m->d->options.strings) {
            const char *name = run_name(m->d, r);
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
        if (!r->n || run_key(m->d, r) != at->key) continue;
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
static uint64_t place_key(unsigned table, const struct merged *at)
{
    enum { COUNT_BITS = 24 };
    const unsigned cold = DICT_SEGMENTS - (unsigned)__builtin_popcount(at->mask);
    const uint32_t most = (1u << COUNT_BITS) - 1;
    const uint32_t rank = most - (at->count < most ? at->count : most);
    const uint32_t middle = cold ? at->mask << 16 | at->first : UINT32_MAX - at->count;
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

static unsigned table_of(const struct dict *d, const struct merged *m)
{
    return d->options.table_by_field && m->field ? 1 : 0;
}

static uint64_t place_of(const struct dict *d, const struct merged *at)
{
    unsigned table = table_of(d, at);
    if (d->options.by_hash)
        return (uint64_t)table << 62 | grid_place(d->options.order_seed, at->key);
    return place_key(table, at);
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
            struct sort_record r = {.hi = place_of(p->d, &at), .a = (uint32_t)number};
            rows_out[table_of(p->d, &at)]++;
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

static int number_places(struct placing *p, uint32_t first_row, struct drps_err *err)
{
    const struct sort_record *r;
    uint64_t placed = first_row;
    int rc = extsort_finish(p->by_place, err);
    while (rc == 0 && (rc = extsort_next(p->by_place, &r, err)) > 0) {
        if (placed >= DRPS_NO_ROW)
            return drps_err_set(err, DRPS_E_CONFIG,
                                "more than 4,294,967,294 rows: use a data set with fewer features");
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
    for (uint64_t done = 0, n; rc == 0 && done < d->next_id; done += n) {
        n = d->next_id - done < PART ? d->next_id - done : PART;
        for (uint64_t i = 0; rc == 0 && i < n; i++)
            rc = scatter_next(&p->by_id, &part[i], err);
        if (rc == 0)
            rc = drps_io_write_at(d->io, d->map_fd, part, n * sizeof(*part), done * sizeof(*part),
                                  d->map_path, err);
    }
    free(part);
    return rc;
}

int dict_place(struct dict *d, const char *plan_dir, uint32_t first_row, uint64_t rows_out[2],
               struct drps_err *err)
{
    struct placing p = {.d = d};
    uint64_t share = d->options.memory_bytes / 3;

    rows_out[0] = rows_out[1] = 0;
    int rc = last_generation(d, err);
    if (rc == 0) rc = extsort_open(d->io, d->dir, "place", share, &p.by_place, err);
    if (rc == 0) rc = scatter_open(d, "key", d->next_id, share, &p.by_key, err);
    if (rc == 0) rc = collect_places(&p, rows_out, err);
    if (rc == 0) rc = number_places(&p, first_row, err);
    extsort_close(p.by_place);
    if (rc == 0) rc = scatter_open(d, "id", d->next_id, share, &p.by_id, err);
    if (rc == 0) rc = write_names(&p, plan_dir, err);
    free_table(d);
    scatter_close(&p.by_key);
    if (rc == 0) rc = write_map(&p, err);
    scatter_close(&p.by_id);
    return rc;
}

int dict_map(struct dict *d, size_t generation, uint32_t *map_out, struct drps_err *err)
{
    uint64_t from = dict_base(d, generation);
    size_t n = dict_base(d, generation + 1) - (size_t)from;
    return drps_io_read_at(d->io, d->map_fd, map_out, n * sizeof(*map_out), from * sizeof(*map_out),
                           d->map_path, err);
}
