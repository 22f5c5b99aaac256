/* Names come in the order of keys and are kept as they come. Where they outgrow the memory, the
 * slice becomes half as long, and names of rows that are no longer in it are dropped. */
#include "engine/readout/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_endian.h"
#include "base/drps_find.h"

/* A name in the arena; its text follows, filled up to 8 bytes. */
struct entry {
    uint64_t key;
    uint32_t position; /* in the slice */
    uint32_t bytes;
    uint32_t field;
    uint32_t is_text;
};

int readout_names_init(struct readout_names *s, struct drps_modeldir *md, const uint32_t *rows,
                       uint64_t all, uint64_t bytes, struct drps_err *err)
{
    const uint64_t most = bytes / (sizeof(*s->at) + sizeof(struct entry));
    *s = (struct readout_names){.md = md, .rows = rows, .all = all};
    s->most = (size_t)(all < most ? all : most);
    s->cap = (size_t)(bytes - s->most * sizeof(*s->at));
    s->at = drps_array_new(s->most, sizeof(*s->at));
    s->arena = drps_array_new(s->cap, 1);
    if (s->at && s->arena) return 0;
    readout_names_destroy(s);
    return drps_err_set(err, -ENOMEM, "no memory for names of %zu rows", s->most);
}

void readout_names_destroy(struct readout_names *s)
{
    free(s->at);
    free(s->arena);
    s->at = NULL;
    s->arena = NULL;
}

/* Returns the position of a row in the slice, or SIZE_MAX. */
static size_t position_of(const struct readout_names *s, uint32_t row)
{
    if (!s->rows) return row >= s->first && row - s->first < s->n ? row - s->first : SIZE_MAX;
    const uint32_t *rows = s->rows + s->first;
    const size_t at = drps_count_below(rows, s->n, row);
    return at < s->n && rows[at] == row ? at : SIZE_MAX;
}

static size_t entry_bytes(size_t text_bytes)
{
    return sizeof(struct entry) + drps_align_up(text_bytes, 8);
}

/* Keep the names of the first half of the slice. */
static void halve(struct readout_names *s)
{
    size_t to = 0;
    s->n -= s->n / 2;
    s->most = s->n; /* of the slices that come, too */
    for (size_t from = 0, bytes; from < s->used; from += bytes) {
        struct entry e;
        memcpy(&e, s->arena + from, sizeof(e));
        bytes = entry_bytes(e.bytes);
        if (e.position >= s->n) continue;
        memmove(s->arena + to, s->arena + from, bytes);
        s->at[e.position] = to + 1;
        to += bytes;
    }
    s->used = to;
}

static int keep_name(void *ctx, uint64_t key, uint32_t row, unsigned field, const char *text,
                     size_t bytes, struct drps_err *err)
{
    struct readout_names *s = ctx;
    size_t position = position_of(s, row);
    if (position == SIZE_MAX || (s->drops_samples && !text && key >= DRPS_SAMPLE_KEYS)) return 0;
    while (entry_bytes(bytes) > s->cap - s->used) {
        if (s->n == 1)
            return drps_err_set(err, DRPS_E_MEMORY_BUDGET,
                                "the name of row %u has %zu bytes: raise the memory limit", row,
                                bytes);
        halve(s);
        if (position >= s->n) return 0;
    }
    if (s->at[position])
        return drps_err_set(err, DRPS_E_CORRUPT, DRPS_MODEL_NAMES " gives row %u two names", row);
    const struct entry e = {.key = key,
                            .position = (uint32_t)position,
                            .bytes = (uint32_t)bytes,
                            .field = field,
                            .is_text = text != NULL};
    memcpy(s->arena + s->used, &e, sizeof(e));
    if (bytes) memcpy(s->arena + s->used + sizeof(e), text, bytes);
    s->at[position] = s->used + 1;
    s->used += entry_bytes(bytes);
    return 0;
}

int readout_names_load(struct readout_names *s, uint64_t first, struct drps_err *err)
{
    const uint64_t left = s->all - first;
    s->first = first;
    s->n = left < s->most ? (size_t)left : s->most;
    s->used = 0;
    memset(s->at, 0, s->n * sizeof(*s->at));
    return drps_modeldir_scan_names(s->md, keep_name, s, err);
}

int readout_names_get(const struct readout_names *s, size_t position, struct readout_name *out)
{
    struct entry e;
    if (!s->at[position]) return 0;
    const char *at = s->arena + (s->at[position] - 1);
    memcpy(&e, at, sizeof(e));
    *out = (struct readout_name){.key = e.key, .field = e.field, .bytes = e.bytes};
    out->text = e.is_text ? at + sizeof(e) : NULL;
    return 1;
}
