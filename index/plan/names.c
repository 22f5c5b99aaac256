/*
 * The dictionary of a finished plan or model, names.rec (drps_names.h): pages sorted by key, and
 * an index of their first keys.
 */
#include "index/plan/drps_names_writer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_endian.h"
#include "base/record/drps_recfile.h"
#include "index/plan/drps_names.h"
#include "index/plan/drps_plan.h"

enum { PAGE_NAMES = 4096, HEAD_BYTES = 8, STRINGS = 1 };

/* ---- Writing ---- */

struct names_writer {
    struct drps_recwriter *out;
    int strings;
    size_t n; /* names of the current page */
    uint64_t keys[PAGE_NAMES];
    uint32_t rows[PAGE_NAMES];
    uint16_t fields[PAGE_NAMES];
    uint32_t offsets[PAGE_NAMES + 1];
    char *text;
    size_t text_cap;
    uint64_t *firsts; /* first key of every page */
    size_t firsts_n, firsts_cap;
};

int drps_names_writer_open(const struct drps_io *io, const char *dir, int strings,
                           struct names_writer **w_out, struct drps_err *err)
{
    *w_out = NULL;
    struct names_writer *w = calloc(1, sizeof(*w));
    char *path = drps_path_join(dir, DRPS_FILE_NAMES);
    if (!w || !path) {
        free(w);
        free(path);
        return drps_err_set(err, -ENOMEM, "no memory for the dictionary");
    }
    w->strings = strings;
    int rc = drps_recwriter_open(io, path, DRPS_KIND_NAMES, &w->out, err);
    free(path);
    if (rc < 0) {
        drps_names_writer_close(w);
        return rc;
    }
    *w_out = w;
    return 0;
}

void drps_names_writer_close(struct names_writer *w)
{
    if (!w) return;
    drps_recwriter_close(w->out);
    free(w->text);
    free(w->firsts);
    free(w);
}

static int write_page(struct names_writer *w, struct drps_err *err)
{
    static const char zeros[4];
    unsigned char head[HEAD_BYTES];
    if (!w->n) return 0;
    if (drps_array_reserve(&w->firsts, &w->firsts_cap, w->firsts_n + 1, sizeof(*w->firsts)))
        return drps_err_set(err, -ENOMEM, "no memory for the dictionary's index");
    w->firsts[w->firsts_n++] = w->keys[0];
    drps_put_u32(head, (uint32_t)w->n);
    drps_put_u32(head + 4, w->strings ? STRINGS : 0);
    struct drps_piece pieces[] = {
        {head, sizeof(head)},
        {w->keys, w->n * sizeof(*w->keys)},
        {w->rows, w->n * sizeof(*w->rows)},
        {w->fields, w->n * sizeof(*w->fields)},
        {zeros, w->n % 2 * 2},
        {w->offsets, (w->n + 1) * sizeof(*w->offsets)},
        {w->text, w->offsets[w->n]},
    };
    int rc = drps_recwriter_add(w->out, pieces, w->strings ? 7 : 3, err);
    w->n = 0;
    return rc;
}

int drps_names_writer_add(struct names_writer *w, uint64_t key, uint32_t row, unsigned field,
                          const char *text, size_t bytes, struct drps_err *err)
{
    /* Offsets have 32 bits: a page ends early before its strings outgrow them. */
    if (w->n == PAGE_NAMES || (w->n && w->strings && bytes > UINT32_MAX - w->offsets[w->n])) {
        int rc = write_page(w, err);
        if (rc < 0) return rc;
    }
    w->keys[w->n] = key;
    w->rows[w->n] = row;
    if (w->strings) {
        uint32_t at = w->offsets[w->n];
        if (drps_array_reserve(&w->text, &w->text_cap, at + bytes, 1))
            return drps_err_set(err, -ENOMEM, "no memory for the dictionary's strings");
        memcpy(w->text + at, text, bytes);
        w->fields[w->n] = (uint16_t)field;
        w->offsets[w->n + 1] = at + (uint32_t)bytes;
    }
    w->n++;
    return 0;
}

int drps_names_writer_finish(struct names_writer *w, struct drps_err *err)
{
    int rc = write_page(w, err);
    struct drps_piece index = {w->firsts, w->firsts_n * sizeof(*w->firsts)};
    if (rc == 0) rc = drps_recwriter_add(w->out, &index, 1, err);
    if (rc == 0) rc = drps_recwriter_finish(w->out, err);
    return rc;
}

/* ---- Reading ---- */

/* A page, decoded in place. */
struct page {
    size_t n;
    int strings;
    const char *keys;    /* u64 each */
    const char *rows;    /* u32 each */
    const char *fields;  /* u16 each */
    const char *offsets; /* u32 each, n + 1 */
    const char *text;
};

struct drps_names {
    struct drps_recfile *file;
    uint64_t pages;
    uint64_t *firsts; /* [pages] */
    char *data;       /* the page read last */
    size_t cap;
    uint64_t loaded; /* its number; `pages`: none */
    struct page page;
    uint64_t next_page; /* of drps_names_next() */
    size_t next;        /* in that page */
};

static int load_directory(struct drps_names *names, struct drps_err *err)
{
    uint64_t count = drps_recfile_count(names->file);
    if (!count) return drps_err_set(err, DRPS_E_CORRUPT, DRPS_FILE_NAMES " has no directory");
    names->pages = names->loaded = count - 1;
    if (drps_recfile_bytes(names->file, names->pages) != names->pages * sizeof(*names->firsts))
        return drps_err_set(err, DRPS_E_CORRUPT,
                            DRPS_FILE_NAMES ": the directory does not list its %llu pages",
                            (unsigned long long)names->pages);
    names->firsts = drps_array_new(names->pages, sizeof(*names->firsts));
    if (!names->firsts) return drps_err_set(err, -ENOMEM, "no memory for the dictionary's index");
    return drps_recfile_read(names->file, names->pages, 1, names->firsts, err);
}

int drps_names_open(const struct drps_io *io, const char *dir, struct drps_names **names_out,
                    struct drps_err *err)
{
    *names_out = NULL;
    struct drps_names *names = calloc(1, sizeof(*names));
    char *path = drps_path_join(dir, DRPS_FILE_NAMES);
    int rc = names && path ? 0 : drps_err_set(err, -ENOMEM, "no memory for the dictionary");
    if (rc == 0) rc = drps_recfile_open(io, path, DRPS_KIND_NAMES, &names->file, err);
    if (rc == 0) rc = load_directory(names, err);
    free(path);
    if (rc < 0) {
        drps_names_close(names);
        return rc;
    }
    *names_out = names;
    return 0;
}

void drps_names_close(struct drps_names *names)
{
    if (!names) return;
    drps_recfile_close(names->file);
    free(names->firsts);
    free(names->data);
    free(names);
}

uint64_t drps_names_bytes(const struct drps_names *names)
{
    return drps_recfile_file_bytes(names->file);
}

static int decode_page(struct drps_names *names, size_t bytes, struct drps_err *err)
{
    struct page *p = &names->page;
    const char *at = names->data;
    size_t need = HEAD_BYTES;
    if (bytes < need) goto bad;
    p->n = drps_get_u32(at);
    p->strings = drps_get_u32(at + 4) == STRINGS;
    if (drps_get_u32(at + 4) > STRINGS || !p->n || p->n > PAGE_NAMES) goto bad;
    need += p->n * 12;
    if (p->strings) need += (p->n * 2 + 3) / 4 * 4 + (p->n + 1) * 4;
    if (bytes < need) goto bad;
    p->keys = at + HEAD_BYTES;
    p->rows = p->keys + p->n * 8;
    p->fields = p->offsets = p->text = NULL;
    if (p->strings) {
        p->fields = p->rows + p->n * 4;
        p->offsets = p->fields + (p->n * 2 + 3) / 4 * 4;
        p->text = p->offsets + (p->n + 1) * 4;
    }
    for (size_t i = 0; p->strings && i < p->n; i++)
        if (drps_get_u32(p->offsets + 4 * i) > drps_get_u32(p->offsets + 4 * (i + 1))) goto bad;
    if (bytes - need != (p->strings ? drps_get_u32(p->offsets + 4 * p->n) : 0)) goto bad;
    if (drps_get_u64(p->keys) != names->firsts[names->loaded]) goto bad;
    return 0;
bad:
    return drps_err_set(err, DRPS_E_CORRUPT, DRPS_FILE_NAMES ": page %llu is malformed",
                        (unsigned long long)names->loaded);
}

static int load_page(struct drps_names *names, uint64_t number, struct drps_err *err)
{
    if (names->loaded == number) return 0;
    size_t bytes = (size_t)drps_recfile_run_bytes(names->file, number, 1);
    if (drps_array_reserve(&names->data, &names->cap, bytes, 1))
        return drps_err_set(err, -ENOMEM, "no memory for a page of the dictionary");
    names->loaded = names->pages; /* none, until this one is whole */
    int rc = drps_recfile_read(names->file, number, 1, names->data, err);
    if (rc < 0) return rc;
    names->loaded = number;
    rc = decode_page(names, (size_t)drps_recfile_bytes(names->file, number), err);
    if (rc < 0) names->loaded = names->pages;
    return rc;
}

/* The last page from `from` on whose first key is <= key. */
static uint64_t page_of(const struct drps_names *names, uint64_t from, uint64_t key)
{
    uint64_t low = from;
    uint64_t high = names->pages;
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (names->firsts[middle] <= key)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static uint32_t find_in_page(const struct page *p, uint64_t key)
{
    size_t low = 0;
    size_t high = p->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        uint64_t k = drps_get_u64(p->keys + 8 * middle);
        if (k == key) return drps_get_u32(p->rows + 4 * middle);
        if (k < key)
            low = middle + 1;
        else
            high = middle;
    }
    return DRPS_NO_ROW;
}

int drps_names_lookup(struct drps_names *names, const uint64_t *keys, size_t n, uint32_t *rows_out,
                      struct drps_err *err)
{
    uint64_t at = 0;
    for (size_t i = 0; i < n; i++) {
        rows_out[i] = DRPS_NO_ROW;
        if (!names->pages || keys[i] < names->firsts[0]) continue;
        at = page_of(names, at, keys[i]);
        int rc = load_page(names, at, err);
        if (rc < 0) return rc;
        rows_out[i] = find_in_page(&names->page, keys[i]);
    }
    return 0;
}

/* Name i of the page. */
static void take_name(const struct page *p, size_t i, struct drps_names_entry *out)
{
    *out = (struct drps_names_entry){.key = drps_get_u64(p->keys + 8 * i),
                                     .row = drps_get_u32(p->rows + 4 * i)};
    if (!p->strings) return;
    const uint32_t from = drps_get_u32(p->offsets + 4 * i);
    uint16_t field;
    memcpy(&field, p->fields + 2 * i, 2);
    out->field = field;
    out->text = p->text + from;
    out->bytes = drps_get_u32(p->offsets + 4 * (i + 1)) - from;
}

int drps_names_next(struct drps_names *names, struct drps_names_entry *out, struct drps_err *err)
{
    if (names->next_page == names->pages) return 0;
    int rc = load_page(names, names->next_page, err);
    if (rc < 0) return rc;
    take_name(&names->page, names->next, out);
    if (++names->next == names->page.n) {
        names->next = 0;
        names->next_page++;
    }
    return 1;
}

int drps_names_scan(struct drps_names *names, drps_names_visit visit, void *ctx,
                    struct drps_err *err)
{
    struct drps_names_entry e;
    int rc;
    names->next_page = names->next = 0;
    while ((rc = drps_names_next(names, &e, err)) > 0) {
        rc = visit(ctx, e.key, e.row, e.field, e.text, e.bytes, err);
        if (rc) return rc;
    }
    return rc;
}
