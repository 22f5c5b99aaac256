/* Ratings wait in a batch until their users and items have been looked up together. */
#include "engine/recommend/input/drps_ratings.h"

#include <errno.h>
#include <stdlib.h>

#include "engine/publish/drps_modeldata.h"
#include "engine/recommend/input/keyrows.h"
#include "engine/recommend/input/drps_people.h"
#include "base/folder/drps_lines.h"

enum { BATCH = 32768 };

struct batch {
    struct drps_modeldir *md;
    const struct drps_ratings_files *files;
    const struct drps_rating_sink *sink;
    struct drps_ratings_read *read;
    struct drps_modeldata data;
    struct drps_keyrows keys;    /* of rating i user and item: 2 i and 2 i + 1 */
    struct drps_rating *waiting; /* own: [BATCH] */
    size_t n;
};

uint64_t drps_ratings_memory(void)
{
    return sizeof(struct batch) + BATCH * (uint64_t)sizeof(struct drps_rating) +
           drps_keyrows_memory(2 * BATCH);
}

static int flush(struct batch *b, struct drps_err *err)
{
    int rc = drps_keyrows_find(&b->keys, b->md, err);
    for (size_t i = 0; rc == 0 && i < b->n; i++) {
        struct drps_rating *r = &b->waiting[i];
        r->user = b->keys.rows[2 * i];
        r->item = b->keys.rows[2 * i + 1];
        b->read->unknown +=
            r->item == DRPS_NO_ROW || (r->user == DRPS_NO_ROW && !b->sink->new_users);
        rc = b->sink->take(b->sink->ctx, r, err);
    }
    b->n = b->keys.n = 0;
    if (rc == 0 && b->files->on_progress) b->files->on_progress(b->files->ctx, b->read->ratings);
    return rc;
}

/* Sample i of the piece: one name in each of the two fields. */
static int add(struct batch *b, size_t i, struct drps_err *err)
{
    const struct drps_samples *p = &b->data.piece;
    uint64_t keys[DRPS_FIELDS] = {0}, name = 0;
    int has[DRPS_FIELDS] = {0}, rc = 0;
    for (size_t j = p->starts[i]; rc == 0 && j < p->starts[i + 1]; j++) {
        uint64_t key;
        uint32_t field;
        if (!drps_modeldata_key(&b->data, j, &key, &field) || field >= DRPS_FIELDS) continue;
        keys[field] = key;
        has[field]++;
        if (field == DRPS_FIELD_USER && b->sink->keep_name)
            rc = b->sink->keep_name(b->sink->ctx, key, p->names[j].text, p->names[j].bytes, &name,
                                    err);
    }
    b->read->ratings++;
    if (rc == 0 && (has[DRPS_FIELD_USER] != 1 || has[DRPS_FIELD_ITEM] != 1)) {
        b->read->unknown++;
        return 0;
    }
    if (rc < 0) return rc;
    b->waiting[b->n++] = (struct drps_rating){
        .user_key = keys[DRPS_FIELD_USER], .value = p->labels[i], .name = name};
    drps_keyrows_add(&b->keys, keys[DRPS_FIELD_USER]);
    drps_keyrows_add(&b->keys, keys[DRPS_FIELD_ITEM]);
    return b->n == BATCH ? flush(b, err) : 0;
}

static int read_all(struct batch *b, struct drps_err *err)
{
    int rc;
    while ((rc = drps_reader_next(b->data.reader, &b->data.piece, err)) > 0)
        for (size_t i = 0; i < b->data.piece.n; i++) {
            rc = add(b, i, err);
            if (rc < 0) return rc;
        }
    return rc == 0 ? flush(b, err) : rc;
}

/* An empty file has no columns. */
static int check_fields(const struct batch *b, struct drps_err *err)
{
    size_t n;
    (void)drps_reader_fields(b->data.reader, &n);
    if (!n || !b->data.fields || b->data.fields_known == DRPS_FIELDS) return 0;
    return drps_err_set(err, DRPS_E_CONFIG,
                        "the columns of %s are not the users and items of %s: name the columns, or "
                        "the format ratings",
                        drps_lines_name(b->files->paths[0]), b->files->model);
}

int drps_ratings_read(const struct drps_io *io, struct drps_modeldir *md,
                      const struct drps_ratings_files *files, const struct drps_rating_sink *sink,
                      struct drps_ratings_read *read_out, struct drps_err *err)
{
    struct batch b = {.md = md, .files = files, .sink = sink, .read = read_out};
    int rc = drps_modeldata_open(io, files->model, drps_modeldir_info(md), files->paths, files->n,
                                 &files->reader, &b.data, err);
    if (rc == 0) rc = check_fields(&b, err);
    b.waiting = malloc(BATCH * sizeof(*b.waiting));
    if (rc == 0 && !b.waiting) rc = drps_err_set(err, -ENOMEM, "no memory to read ratings");
    if (rc == 0) rc = drps_keyrows_init(&b.keys, (size_t)2 * BATCH, err);
    if (rc == 0) rc = read_all(&b, err);
    if (b.data.reader) read_out->skipped += drps_reader_skipped(b.data.reader);
    drps_keyrows_destroy(&b.keys);
    free(b.waiting);
    drps_modeldata_close(&b.data);
    return rc;
}
