/* A place is where a name's text begins, and below that how long it is. 0 means no name: the texts
 * begin with a byte that is none's. */
#include "engine/recommend/input/drps_rownames.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_extsort.h"
#include "engine/recommend/input/drps_part.h"

enum { LENGTH_BITS = 24, PLACES = 4096 };

struct drps_rownames {
    const struct drps_io *io;
    struct drps_modeldir *md;
    const struct drps_rowset *const *sets;
    size_t sets_n;
    uint64_t rows;
    uint64_t *places; /* own: [rows]; NULL: in a file */
    char *texts;      /* own: all of them, or room for one */
    size_t used, cap;
    struct drps_part *text_file, *place_file; /* own */
    struct drps_extsort *sort;                /* own: while files are made */
};

static int is_wanted(const struct drps_rownames *names, uint32_t row)
{
    for (size_t i = 0; i < names->sets_n; i++)
        if (drps_rowset_has(names->sets[i], row)) return 1;
    return 0;
}

static int no_memory(struct drps_err *err)
{
    return drps_err_set(err, -ENOMEM, "no memory for names");
}

/* ---- In memory ---- */

static int count_text(void *ctx, uint64_t key, uint32_t row, unsigned field, const char *text,
                      size_t bytes, struct drps_err *err)
{
    struct drps_rownames *names = ctx;
    (void)key;
    (void)field;
    (void)text;
    if (bytes >> LENGTH_BITS)
        return drps_err_set(err, DRPS_E_CORRUPT, "the name of row %u has %zu bytes", row, bytes);
    if (is_wanted(names, row)) names->cap += bytes;
    return 0;
}

static uint64_t place_of(uint64_t at, size_t bytes)
{
    return at << LENGTH_BITS | bytes;
}

static int keep_text(void *ctx, uint64_t key, uint32_t row, unsigned field, const char *text,
                     size_t bytes, struct drps_err *err)
{
    struct drps_rownames *names = ctx;
    (void)key;
    (void)field;
    if (!is_wanted(names, row)) return 0;
    if (bytes > names->cap - names->used)
        return drps_err_set(err, DRPS_E_CORRUPT, "the dictionary has changed meanwhile");
    names->places[row] = place_of(names->used, bytes);
    memcpy(names->texts + names->used, text, bytes);
    names->used += bytes;
    return 0;
}

static int hold(struct drps_rownames *names, struct drps_err *err)
{
    names->places = calloc(names->rows, sizeof(*names->places));
    names->texts = malloc(names->cap);
    if (!names->places || !names->texts) return no_memory(err);
    names->used = 1;
    return drps_modeldir_scan_names(names->md, keep_text, names, err);
}

/* ---- In files ---- */

static int file_text(void *ctx, uint64_t key, uint32_t row, unsigned field, const char *text,
                     size_t bytes, struct drps_err *err)
{
    struct drps_rownames *names = ctx;
    (void)key;
    (void)field;
    if (!is_wanted(names, row)) return 0;
    const struct drps_sort_record r = {.hi = row,
                                       .lo = place_of(drps_part_bytes(names->text_file), bytes)};
    int rc = drps_part_add(names->text_file, text, bytes, err);
    return rc == 0 ? drps_extsort_add(names->sort, &r, err) : rc;
}

/* Places come in the order of rows; rows between them have none. */
static int file_places(struct drps_rownames *names, struct drps_err *err)
{
    const struct drps_sort_record *r;
    const uint64_t none = 0;
    uint64_t next = 0;
    int rc = drps_extsort_finish(names->sort, err);
    while (rc == 0 && (rc = drps_extsort_next(names->sort, &r, err)) > 0) {
        for (rc = 0; rc == 0 && next < r->hi; next++)
            rc = drps_part_add(names->place_file, &none, sizeof(none), err);
        if (rc == 0) rc = drps_part_add(names->place_file, &r->lo, sizeof(r->lo), err);
        next++;
    }
    return rc;
}

static int file(struct drps_rownames *names, uint64_t memory_bytes, const char *scratch,
                struct drps_err *err)
{
    int rc = drps_part_open(names->io, scratch, 2, &names->text_file, err);
    if (rc == 0) rc = drps_part_open(names->io, scratch, 3, &names->place_file, err);
    if (rc == 0) rc = drps_part_add(names->text_file, "", 1, err);
    if (rc == 0)
        rc = drps_extsort_open(names->io, scratch, "1", memory_bytes - DRPS_ROWNAMES_LEAST / 2,
                               &names->sort, err);
    if (rc == 0) rc = drps_modeldir_scan_names(names->md, file_text, names, err);
    if (rc == 0) rc = file_places(names, err);
    if (rc == 0) rc = drps_part_finish(names->text_file, err);
    if (rc == 0) rc = drps_part_finish(names->place_file, err);
    drps_extsort_close(names->sort);
    names->sort = NULL;
    names->cap = 0; /* of the room for one text */
    return rc;
}

/* ---- Both ---- */

int drps_rownames_open(const struct drps_io *io, struct drps_modeldir *md,
                       const struct drps_rowset *const *sets, size_t n, uint64_t memory_bytes,
                       const char *scratch, struct drps_rownames **names_out, struct drps_err *err)
{
    struct drps_rownames *names = calloc(1, sizeof(*names));
    *names_out = NULL;
    if (!names) return no_memory(err);
    names->io = io;
    names->md = md;
    names->sets = sets;
    names->sets_n = n;
    names->rows = drps_modeldir_info(md)->rows;
    names->cap = 1;
    int rc = drps_modeldir_scan_names(md, count_text, names, err);
    if (rc == 0)
        rc = names->cap + names->rows * sizeof(*names->places) <= memory_bytes
                 ? hold(names, err)
                 : file(names, memory_bytes, scratch, err);
    if (rc < 0) {
        drps_rownames_close(names);
        return rc;
    }
    *names_out = names;
    return 0;
}

void drps_rownames_close(struct drps_rownames *names)
{
    if (!names) return;
    drps_extsort_close(names->sort);
    drps_part_close(names->text_file);
    drps_part_close(names->place_file);
    free(names->places);
    free(names->texts);
    free(names);
}

static int find_place(struct drps_rownames *names, uint32_t row, uint64_t *place_out,
                      struct drps_err *err)
{
    const uint64_t at = row * (uint64_t)sizeof(*place_out);
    *place_out = 0;
    if (names->places) {
        *place_out = names->places[row];
        return 0;
    }
    return at < drps_part_bytes(names->place_file)
               ? drps_part_read(names->place_file, place_out, sizeof(*place_out), at, err)
               : 0;
}

int drps_rownames_get(struct drps_rownames *names, uint32_t row, const char **text_out,
                      size_t *n_out, struct drps_err *err)
{
    uint64_t place;
    int rc = find_place(names, row, &place, err);
    const size_t n = place & ((UINT64_C(1) << LENGTH_BITS) - 1);
    if (rc == 0 && !place) rc = drps_err_set(err, DRPS_E_CORRUPT, "row %u has no name", row);
    if (rc < 0) return rc;
    *n_out = n;
    *text_out = names->texts + (place >> LENGTH_BITS);
    if (names->places) return 0;
    if (drps_array_reserve(&names->texts, &names->cap, n, 1)) return no_memory(err);
    *text_out = names->texts;
    return drps_part_read(names->text_file, names->texts, n, place >> LENGTH_BITS, err);
}
