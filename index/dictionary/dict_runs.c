/*
 * Generations of the dictionary as sorted runs on disk: each is written when the table is full,
 * and all are merged at the end.
 */
#include "index/dictionary/dict_runs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_endian.h"
#include "base/record/drps_recfile.h"

#define KIND_RUN DRPS_REC_KIND('R', 'U', 'N', '0')

enum { PAGE_ENTRIES = 4096 };

/* ---- Writing ---- */

/* An entry of a run. */
struct entry {
    uint64_t key;
    uint16_t mask, first;
    uint32_t count;
    uint32_t id, check;
};

static struct entry entry_of(const struct dict *d, const struct dict_keyed *k, uint32_t base)
{
    const struct key_count *c = key_table_count(&d->keys, k->id);
    return (struct entry){.key = k->key,
                          .mask = c->mask,
                          .first = (uint16_t)key_count_first(c),
                          .count = c->uses,
                          .id = base + k->id,
                          .check = d->keys.checks ? d->keys.checks[k->id] : 0};
}

/* One page of a run: u32 n | n entries | strings: n x (u32 offset of the end) and the names as in
 * the arena. */
static int write_page(struct dict *d, struct drps_recwriter *w, const struct dict_keyed *sorted,
                      size_t n, uint32_t base, char **text, size_t *text_cap, struct drps_err *err)
{
    uint32_t head[2] = {(uint32_t)n, 0};
    struct entry entries[PAGE_ENTRIES];
    uint32_t ends[PAGE_ENTRIES];
    size_t bytes = 0;

    for (size_t i = 0; i < n; i++)
        entries[i] = entry_of(d, &sorted[i], base);
    for (size_t i = 0; d->options.strings && i < n; i++) {
        const char *name = d->arena + d->name_at[sorted[i].id];
        size_t name_bytes = DICT_NAME_HEAD + drps_get_u32(name + 2);
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

/* The next keys in order; returns how many, 0 at the end. */
static size_t take_page(const struct dict *d, struct dict_cursor *at,
                        struct dict_keyed page[PAGE_ENTRIES])
{
    size_t n = 0;
    while (n < PAGE_ENTRIES && drps_dict_next(d, at, &page[n]))
        n++;
    return n;
}

int drps_dict_end_generation(struct dict *d, struct drps_err *err)
{
    struct drps_recwriter *w = NULL;
    char *text = NULL;
    size_t text_cap = 0;
    uint32_t base = d->bases[d->bases_n - 1];
    char *path = run_path(d, d->bases_n - 1);

    if (!path) return drps_err_set(err, -ENOMEM, "no memory for the dictionary");
    const uint32_t end = dict_next_id(d);
    struct dict_cursor at = {0};
    struct dict_keyed page[PAGE_ENTRIES];
    int rc = drps_dict_sort_table(d, err);
    if (rc == 0) rc = drps_recwriter_open(d->io, path, KIND_RUN, &w, err);
    for (size_t n; rc == 0 && (n = take_page(d, &at, page)) > 0;)
        rc = write_page(d, w, page, n, base, &text, &text_cap, err);
    if (rc == 0) rc = drps_recwriter_finish(w, err);
    drps_recwriter_close(w);
    free(text);
    free(path);
    if (rc < 0) return rc;
    drps_dict_free_sorted(d);
    d->arena_n = 0;
    if (drps_key_table_reopen(&d->keys) < 0)
        return drps_err_set(err, -ENOMEM, "no memory for the dictionary");
    return drps_dict_push_base(d, end, err);
}

/* ---- Merging ---- */

/* One run being read a page at a time. */
struct dict_run {
    struct drps_recfile *file;
    uint64_t page;
    char *data;
    size_t cap;
    size_t n, at; /* entries of the page, next one */
};

static uint64_t run_key(const struct dict_run *r)
{
    return drps_get_u64(r->data + 8 + r->at * sizeof(struct entry));
}

static struct entry run_entry(const struct dict_run *r)
{
    struct entry e;
    memcpy(&e, r->data + 8 + r->at * sizeof(e), sizeof(e));
    return e;
}

/* The key of the run's next entry, with what the run counts of it. */
static struct dict_key key_of(const struct dict_run *r, const struct entry *e, int strings)
{
    struct dict_key k = {
        .key = e->key, .mask = e->mask, .first = e->first, .count = e->count, .check = e->check};
    if (!strings) return k;
    const char *ends = r->data + 8 + r->n * sizeof(struct entry);
    const char *name = ends + 4 * r->n + (r->at ? drps_get_u32(ends + 4 * (r->at - 1)) : 0);
    uint16_t field;
    memcpy(&field, name, sizeof(field));
    k.field = field;
    k.bytes = drps_get_u32(name + 2);
    k.text = name + DICT_NAME_HEAD;
    return k;
}

/* Make run_entry() valid; n stays 0 at the end of the run. */
static int run_load(struct dict_run *r, struct drps_err *err)
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

void drps_dict_merge_close(struct dict_merge *m)
{
    for (size_t i = 0; m->runs && i < m->n; i++) {
        drps_recfile_close(m->runs[i].file);
        free(m->runs[i].data);
    }
    free(m->runs);
    m->runs = NULL;
}

int drps_dict_merge_open(struct dict *d, struct dict_merge *m, struct drps_err *err)
{
    m->d = d;
    m->n = drps_dict_generations(d);
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

int drps_dict_merge_next(struct dict_merge *m, struct dict_merged *out, struct drps_err *err)
{
    const struct dict_options *o = &m->d->options;
    uint64_t least = 0;
    int found = 0;
    for (size_t i = 0; i < m->n; i++) {
        if (!m->runs[i].n) continue;
        uint64_t key = run_key(&m->runs[i]);
        if (!found || key < least) least = key;
        found = 1;
    }
    out->ids_n = 0;
    for (size_t i = 0; found && i < m->n; i++) {
        struct dict_run *r = &m->runs[i];
        if (!r->n || run_key(r) != least) continue;
        const struct entry e = run_entry(r);
        const struct dict_key k = key_of(r, &e, o->strings);
        int rc = 0;
        if (out->ids_n)
            rc = drps_dict_join(o, &out->k, &k, err);
        else
            out->k = k;
        if (rc < 0) return rc;
        out->ids[out->ids_n++] = e.id;
    }
    return found;
}

int drps_dict_merge_skip(struct dict_merge *m, const struct dict_merged *at, struct drps_err *err)
{
    for (size_t i = 0; i < m->n; i++) {
        struct dict_run *r = &m->runs[i];
        if (!r->n || run_key(r) != at->k.key) continue;
        if (++r->at < r->n) continue;
        int rc = run_load(r, err);
        if (rc < 0) return rc;
    }
    return 0;
}
