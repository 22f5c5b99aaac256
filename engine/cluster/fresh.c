/* Rows that nobody has trained are left out of messages, and made where these arrive. */
#include "engine/cluster/drps_fresh.h"

#include <errno.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "index/plan/drps_steps.h"

enum { LIST_BUFFER_BYTES = 1 << 18 };

struct drps_fresh {
    const struct drps_server *server;
    struct steps *lists; /* own: of the plan's row numbers, where unions have slots; else NULL */
    uint64_t rows;
    uint64_t *stepped; /* own: a bit for each of them */
};

static size_t mark_bytes(size_t rows)
{
    return (rows + 63) / 64 * sizeof(uint64_t);
}

/* Bytes of a fresh row in a message. */
static size_t id_bytes(const struct drps_model *model)
{
    return drps_model_random(model) ? sizeof(uint32_t) : 0;
}

/* ---- The server ---- */

int drps_fresh_open(const struct drps_plan *part, const struct drps_server *server, int slots,
                    struct drps_fresh **out, struct drps_err *err)
{
    const struct drps_plan_info *info = &part->info;
    struct drps_fresh *f = *out = calloc(1, sizeof(*f));
    if (!f) return drps_err_set(err, -ENOMEM, "no memory for rows that are not trained yet");
    f->server = server;
    f->rows = info->rows;
    f->stepped = calloc((size_t)info->rows / 64 + 1, sizeof(*f->stepped));
    if (!f->stepped) return drps_err_set(err, -ENOMEM, "no memory for a bit a row");
    if (!slots) return 0;
    return drps_steps_open(part->io, part->dir, DRPS_FILE_ROWS, DRPS_KIND_ROWS,
                           info->batches + info->eval_batches, LIST_BUFFER_BYTES, &f->lists, err);
}

void drps_fresh_close(struct drps_fresh *f)
{
    if (!f) return;
    drps_steps_close(f->lists);
    free(f->stepped);
    free(f);
}

int drps_fresh_list(struct drps_fresh *f, uint64_t t, const struct drps_feed_union *u,
                    uint32_t *ids_out, struct drps_err *err)
{
    const uint32_t *ids = u->ids;
    size_t n = u->n;
    int rc = f->lists ? drps_steps_rows(f->lists, t, f->rows, &ids, &n, err) : 0;
    if (rc < 0) return rc;
    if (n != u->n)
        return drps_err_set(err, DRPS_E_CORRUPT, "round %llu has %zu rows, and %zu slots",
                            (unsigned long long)t, n, u->n);
    if (n && ids[n - 1] >= f->rows)
        return drps_err_set(err, DRPS_E_CORRUPT, "round %llu has row %u of %llu",
                            (unsigned long long)t, ids[n - 1], (unsigned long long)f->rows);
    memcpy(ids_out, ids, n * sizeof(*ids));
    return 0;
}

void drps_fresh_step(struct drps_fresh *f, const uint32_t *ids, size_t n)
{
    for (size_t i = 0; i < n; i++)
        f->stepped[ids[i] / 64] |= UINT64_C(1) << ids[i] % 64;
}

/* The intercept, or a net's parameters, of a model whose other rows begin as zeros have no ids that
 * would say so. */
static int is_fresh(const struct drps_fresh *f, uint32_t id)
{
    const struct drps_model *model = &f->server->model;
    const int common = f->server->first_row + id < drps_model_common_rows(model);
    return !(f->stepped[id / 64] >> id % 64 & 1) && (drps_model_random(model) || !common);
}

size_t drps_fresh_pack(const struct drps_fresh *f, const uint32_t *ids, uint32_t *index, size_t *n,
                       size_t row_bytes, unsigned char *data)
{
    const size_t id = id_bytes(&f->server->model);
    const size_t marks = mark_bytes(*n);
    size_t left_out = 0, kept = 0;
    for (size_t i = 0; i < *n; i++)
        left_out += (size_t)is_fresh(f, ids[i]);
    if (row_bytes <= id || left_out * (row_bytes - id) <= marks) return 0;

    unsigned char *at = data + marks;
    memset(data, 0, marks);
    for (size_t i = 0; i < *n; i++) {
        if (!is_fresh(f, ids[i])) {
            index[kept++] = index[i];
            continue;
        }
        const uint32_t placed = (uint32_t)f->server->first_row + ids[i];
        data[i / 8] |= (unsigned char)(1U << i % 8);
        memcpy(at, &placed, id);
        at += id;
    }
    *n = kept;
    return (size_t)(at - data);
}

/* ---- The worker ---- */

static int marked(const unsigned char *marks, size_t i)
{
    return marks[i / 8] >> i % 8 & 1;
}

int drps_fresh_read(const struct drps_model *model, const void *data, size_t bytes, size_t rows,
                    size_t row_bytes, int packed, struct drps_fresh_reader *out)
{
    const size_t marks = packed ? mark_bytes(rows) : 0;
    *out = (struct drps_fresh_reader){.model = model, .values = data, .row_bytes = row_bytes};
    if (!packed) return bytes == rows * row_bytes ? 0 : -1;
    if (bytes < marks) return -1;
    out->marks = data;
    for (size_t i = 0; i < 8 * marks; i++) {
        out->made += (size_t)marked(out->marks, i);
        if (i >= rows && marked(out->marks, i)) return -1;
    }
    out->ids = out->marks + marks;
    out->head_bytes = marks + out->made * id_bytes(model);
    out->values = out->marks + out->head_bytes;
    return bytes == out->head_bytes + (rows - out->made) * row_bytes ? 0 : -1;
}

void drps_fresh_make(struct drps_fresh_reader *reader, char *to)
{
    uint32_t id = 0;
    if (!drps_model_random(reader->model)) {
        memset(to, 0, reader->model->dim * sizeof(float));
        return;
    }
    memcpy(&id, reader->ids, sizeof(id));
    reader->ids += sizeof(id);
    drps_model_init_row(reader->model, id, (float *)(void *)to);
}
