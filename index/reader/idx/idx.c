/*
 * IDX, the format of MNIST: numbers of 1 to 4 dimensions, of which the first counts samples. Number
 * k of a sample, from 1, is its feature k, as it would be in libsvm text: of unsigned bytes v /
 * 255, else as it is; zeros are left out. Where fields are read its field is k - 1, or it is known
 * by its place, k - 1, and there are zeros. Labels lie in another IDX file of one dimension.
 *
 *   no header, a type or dimensions that are none, sizes of 0 or too large   an error
 *   the file, or that of its labels, ends early or goes on                   an error
 *   NaN, infinite, or above the largest float                                an error
 *   files whose samples have other sizes than the first's                    an error
 * None of them is skipped: there are no lines.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "index/plan/codec/drps_dense.h"
#include "index/plan/drps_algorithm.h"
#include "index/reader/drps_parse.h"
#include "index/reader/idx/drps_idx_names.h"
#include "index/reader/idx/labels.h"

enum { PIECE_SAMPLES = 1 << 14, BYTES = 256 };

struct idx {
    struct drps_bytes bytes;
    struct drps_idx_head head; /* of the file that is read */
    uint64_t left;             /* samples of it that are still to come */
    int begun;                 /* its header was read */
    struct drps_idx_labels labels;
    char **paths; /* own: [n_paths] of labels, for each file of data; NULL: it has none */
    size_t n_paths;
    size_t each;        /* numbers of a sample of the files before; 0: there was none */
    const char *before; /* one of these files */
    float shares[BYTES];
    uint32_t channels; /* of an image whose file has them last; 0: it has not */
};

static int idx_looks(const char *head, size_t n)
{
    return drps_idx_looks(head, n);
}

/* ---- Where the labels are ---- */

static int no_labels(const char *items, const char *path, struct drps_err *err)
{
    if (path)
        return drps_err_set(err, -ENOENT,
                            "%s: its labels should be in %s, plain or compressed, and no such "
                            "file is there: put it there, or name the file of labels",
                            items, path);
    return drps_err_set(err, DRPS_E_CONFIG,
                        "%s: idx has its labels in another file, which is found for names like "
                        "train-images-idx3-ubyte: name the file of labels",
                        strcmp(items, "-") == 0 ? "stdin" : items);
}

/* Labels that nobody needs are not looked for. */
static int find_labels(struct drps_reader *r, size_t path, struct drps_err *err)
{
    const struct drps_reader_options *o = &r->options;
    struct idx *d = r->state;
    const char *items = r->chunks.paths[path];
    int found = 0;
    if (o->label_files_n) {
        d->paths[path] = strdup(o->label_files[path]);
        return d->paths[path] ? 0 : drps_err_set(err, -ENOMEM, "no memory for a path");
    }
    if (o->label_optional) return 0;
    int rc = drps_idx_labels_path(r->chunks.in.io, items, &d->paths[path], &found, err);
    return rc < 0 || found ? rc : no_labels(items, d->paths[path], err);
}

/* ---- The format ---- */

static int check_options(const struct drps_reader *r, struct drps_err *err)
{
    const char *file = r->chunks.in.name;
    if (r->options.skip_bad_lines)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s: idx has no lines that could be skipped: leave that out", file);
    if (!r->chunks.carry_n) return 0; /* no file has a byte: there is no sample */
    if (r->chunks.next_path > 1)
        return drps_err_set(err, DRPS_E_FORMAT, "%s: ends at byte 0, within the header of idx",
                            r->chunks.paths[0]);
    return 0;
}

static int idx_open(struct drps_reader *r, const char *head, size_t n, struct drps_err *err)
{
    (void)head;
    int rc = check_options(r, err);
    if (rc < 0) return rc;
    struct idx *d = r->state = calloc(1, sizeof(*d));
    if (d) d->paths = calloc(r->chunks.n_paths, sizeof(*d->paths));
    if (!d || !d->paths) return drps_err_set(err, -ENOMEM, "idx reader");
    d->n_paths = r->chunks.n_paths;
    for (unsigned i = 0; i < BYTES; i++)
        d->shares[i] = (float)i / 255.0f;
    rc = drps_idx_labels_init(&d->labels, r->chunks.in.io, r->options.stop,
                              r->chunks.in.codec_limit_bytes, err);
    for (size_t i = 0; i < d->n_paths && n && rc == 0; i++)
        rc = find_labels(r, i, err);
    return rc;
}

static void idx_close(struct drps_reader *r)
{
    struct idx *d = r->state;
    for (size_t i = 0; i < d->n_paths; i++)
        free(d->paths[i]);
    free(d->paths);
    drps_bytes_free(&d->bytes);
    drps_idx_labels_destroy(&d->labels);
    free(d);
}

static void idx_begin_file(struct drps_reader *r)
{
    struct idx *d = r->state;
    d->begun = 0;
}

/* ---- A file ---- */

/* Features have the same names in all files: the place in a sample. */
static int check_shape(struct idx *d, const char *file, struct drps_err *err)
{
    char shape[DRPS_IDX_SHAPE_BYTES];
    if (d->each && d->each != d->head.each)
        return drps_err_set(
            err, DRPS_E_FORMAT, "%s: byte 8: samples of %s = %zu numbers, and those of %s have %zu",
            file, drps_idx_shape(&d->head, shape), d->head.each, d->before, d->each);
    d->each = d->head.each;
    d->before = file;
    return 0;
}

static int is_dense(const struct drps_reader *r)
{
    return r->options.fields && r->options.one_feature && r->options.numbers != DRPS_READER_SPARSE;
}

/* The place of a number is its field, where fields are read; a net knows how many there are. */
static int check_fields(struct drps_reader *r, const struct idx *d, struct drps_err *err)
{
    const struct drps_reader_options *o = &r->options;
    const size_t most = is_dense(r) ? (size_t)DRPS_DENSE_MOST : (size_t)DRPS_FIELD_MAX + 1;
    char shape[DRPS_IDX_SHAPE_BYTES];
    if (!o->fields) return 0;
    if (d->head.each > most && is_dense(r))
        return drps_err_set(err, DRPS_E_FORMAT,
                            "%s: byte 8: samples of %s = %zu numbers, and there may be %zu: make "
                            "them smaller",
                            r->chunks.in.name, drps_idx_shape(&d->head, shape), d->head.each, most);
    if (d->head.each > most)
        return drps_err_set(err, DRPS_E_FORMAT,
                            "%s: byte 8: samples of %s = %zu numbers, each of which would be a "
                            "field, and there are at most %zu: make them smaller, or use a model "
                            "without fields",
                            r->chunks.in.name, drps_idx_shape(&d->head, shape), d->head.each, most);
    if (o->field_count && o->field_count != d->head.each)
        return drps_err_set(err, DRPS_E_FORMAT,
                            "%s: byte 8: samples of %s = %zu numbers, and the model reads those of "
                            "%u: give it samples of that size",
                            r->chunks.in.name, drps_idx_shape(&d->head, shape), d->head.each,
                            o->field_count);
    r->field_count = (uint32_t)d->head.each;
    r->numbers_each = is_dense(r) ? r->field_count : 0;
    return 0;
}

/* 1: these are sizes of an image, whose channels the file may say. */
static int is_image(const struct drps_image_shape *image, uint32_t channels, uint32_t rows,
                    uint32_t columns)
{
    return (!image->channels || image->channels == channels) && image->rows == rows &&
           image->columns == columns;
}

static int is_flat_image(const struct drps_image_shape *image, size_t each)
{
    const uint64_t pixels = (uint64_t)image->rows * image->columns;
    return each % pixels == 0 && (!image->channels || each / pixels == image->channels);
}

static int other_shape(const struct drps_reader *r, const struct idx *d, struct drps_err *err)
{
    const struct drps_image_shape *image = &r->options.image;
    char shape[DRPS_IDX_SHAPE_BYTES], channels[16] = "channels";
    if (image->channels) (void)snprintf(channels, sizeof(channels), "%u", image->channels);
    return drps_err_set(err, DRPS_E_FORMAT,
                        "%s: byte 8: samples of %s numbers, and the net reads `image %s %u %u`; "
                        "write the channels, rows and columns that a sample has",
                        r->chunks.in.name, drps_idx_shape(&d->head, shape), channels, image->rows,
                        image->columns);
}

/* Samples are of the shape that a net takes them for, if the file says theirs. */
static int check_image(const struct drps_reader *r, struct idx *d, struct drps_err *err)
{
    const struct drps_image_shape *image = &r->options.image;
    const uint32_t *s = d->head.sizes;
    d->channels = 0;
    if (!image->rows) return 0;
    const int fits = d->head.dimensions == 4   ? is_image(image, s[1], s[2], s[3])
                     : d->head.dimensions == 3 ? is_image(image, 1, s[1], s[2])
                                               : is_flat_image(image, d->head.each);
    if (fits) return 0;
    if (d->head.dimensions != 4 || !is_image(image, s[3], s[1], s[2]))
        return other_shape(r, d, err);
    d->channels = s[3];
    return 0;
}

/* A sample is in memory as a whole, and so are its features. */
static int check_size(const struct drps_reader *r, const struct idx *d, struct drps_err *err)
{
    const uint64_t most = r->options.memory_bytes / 2;
    if (d->head.item_bytes <= most) return 0;
    return drps_err_set(err, DRPS_E_MEMORY_BUDGET,
                        "%s: a sample of %zu bytes is larger than %llu, half of the reader's "
                        "memory: give the reader more memory",
                        r->chunks.in.name, d->head.item_bytes, (unsigned long long)most);
}

static int begin_file(struct drps_reader *r, struct idx *d, struct drps_err *err)
{
    struct drps_chunks *c = &r->chunks;
    const char *labels = d->paths[c->next_path - 1];
    int rc = drps_bytes_begin(&d->bytes, &c->in, c->carry, c->carry_n, err);
    c->carry_n = 0;
    if (rc == 0) rc = drps_idx_head_read(&d->bytes, &d->head, err);
    if (rc == 0) rc = check_shape(d, c->in.name, err);
    if (rc == 0) rc = check_image(r, d, err);
    if (rc == 0) rc = check_fields(r, d, err);
    if (rc == 0) rc = check_size(r, d, err);
    if (rc == 0 && labels)
        rc = drps_idx_labels_open(&d->labels, labels, d->head.items, c->in.name, err);
    d->left = d->head.items;
    d->begun = rc == 0;
    r->bytes += d->bytes.offset;
    return rc;
}

static int end_file(struct drps_reader *r, struct idx *d, struct drps_err *err)
{
    int rc = drps_idx_end(&d->bytes, &d->head, err);
    if (rc == 0 && d->paths[r->chunks.next_path - 1]) rc = drps_idx_labels_end(&d->labels, err);
    return rc;
}

static int idx_ready(struct drps_reader *r, size_t *n_out, size_t *each_out, struct drps_err *err)
{
    struct idx *d = r->state;
    int rc = d->begun ? 0 : begin_file(r, d, err);
    if (rc == 0 && !d->left) rc = end_file(r, d, err);
    if (rc < 0 || !d->left) return rc;
    const size_t bytes = d->head.item_bytes;
    size_t n = r->chunks.piece_bytes / bytes;
    n = n < 1 ? 1 : n > PIECE_SAMPLES ? PIECE_SAMPLES : n;
    if (n > d->left) n = (size_t)d->left;
    rc = drps_bytes_need(&d->bytes, n * bytes, err);
    if (rc < 0) return rc;
    const size_t whole = drps_bytes_left(&d->bytes) / bytes;
    if (!whole) return drps_idx_cut(&d->bytes, &d->head, err);
    *n_out = whole < n ? whole : n;
    *each_out = is_dense(r) ? 0 : d->head.each;
    r->beside_bytes = d->bytes.cap + d->labels.bytes.cap + d->labels.in.buf_bytes;
    return 0;
}

/* ---- A sample ---- */

/* Returns the place of number k, where channels come first. */
static size_t place_of(const struct idx *d, size_t k)
{
    if (!d->channels) return k;
    const size_t pixels = d->head.each / d->channels;
    return k % d->channels * pixels + k / d->channels;
}

static void place_bytes(const struct idx *d, const uint8_t *p, float *numbers)
{
    for (size_t k = 0; !d->channels && k < d->head.each; k++)
        numbers[k] = d->shares[p[k]];
    const size_t pixels = d->channels ? d->head.each / d->channels : 0;
    for (size_t c = 0; c < d->channels; c++)
        for (size_t i = 0; i < pixels; i++)
            numbers[c * pixels + i] = d->shares[p[i * d->channels + c]];
}

static void take_bytes(const struct idx *d, const uint8_t *p, struct drps_parse *ps)
{
    uint64_t *keys = ps->out->keys + ps->nnz;
    float *values = ps->out->values + ps->nnz;
    uint16_t *fields = ps->out->fields ? ps->out->fields + ps->nnz : NULL;
    size_t n = 0;
    for (size_t k = 0; k < d->head.each; k++) {
        keys[n] = k + 1;
        if (fields) fields[n] = (uint16_t)place_of(d, k);
        values[n] = d->shares[p[k]];
        n += p[k] != 0;
    }
    ps->nnz += n;
}

static int take_numbers(const struct drps_reader *r, const uint8_t *p, struct drps_parse *ps,
                        struct drps_err *err)
{
    const struct idx *d = r->state;
    const size_t bytes = d->head.item_bytes / d->head.each;
    float *numbers = is_dense(r) ? drps_numbers_next(ps, r->numbers_each) : NULL;
    for (size_t k = 0; k < d->head.each; k++) {
        const double number = drps_idx_number(d->head.type, p + k * bytes);
        const float value = (float)number;
        if (!isfinite(value))
            return drps_err_set(
                err, DRPS_E_FORMAT, "%s: byte %llu: %g is no number that a float can hold",
                r->chunks.in.name,
                (unsigned long long)(d->bytes.offset - d->head.item_bytes + k * bytes), number);
        if (numbers) {
            numbers[place_of(d, k)] = value + 0.0f; /* -0 becomes 0 */
            continue;
        }
        ps->out->keys[ps->nnz] = k + 1;
        if (ps->out->fields) ps->out->fields[ps->nnz] = (uint16_t)place_of(d, k);
        ps->out->values[ps->nnz] = value;
        ps->nnz += value != 0;
    }
    return 0;
}

/* A label as the number that it is, or as the number of the class of that name. */
static int take_label(struct drps_reader *r, struct drps_parse *ps, float *label_out,
                      struct drps_err *err)
{
    struct idx *d = r->state;
    char text[DRPS_IDX_LABEL_BYTES];
    *label_out = 0;
    if (!d->paths[r->chunks.next_path - 1]) return 0; /* prediction */
    const uint64_t at = d->labels.bytes.offset;
    int rc = drps_idx_labels_next(&d->labels, label_out, text, err);
    if (rc < 0) return rc;
    (void)drps_parse_names(r, 1);
    if (!drps_reads_classes(&r->options)) return 0;
    if (drps_parse_class(r, ps, text, text + strlen(text), label_out) == 0) return 0;
    return drps_err_set(err, DRPS_E_FORMAT, "%s: byte %llu: %s", d->labels.in.name,
                        (unsigned long long)at, ps->bad_why);
}

static int idx_take(struct drps_reader *r, struct drps_parse *ps, struct drps_err *err)
{
    struct idx *d = r->state;
    float label;
    int rc = 0;
    const uint8_t *p = drps_bytes_take(&d->bytes, d->head.item_bytes);
    if (d->head.type == DRPS_IDX_U8 && is_dense(r))
        place_bytes(d, p, drps_numbers_next(ps, r->numbers_each));
    else if (d->head.type == DRPS_IDX_U8)
        take_bytes(d, p, ps);
    else
        rc = take_numbers(r, p, ps, err);
    if (rc == 0) rc = take_label(r, ps, &label, err);
    if (rc < 0) return rc;
    d->left--;
    r->bytes += d->head.item_bytes;
    return drps_parse_sample(ps, label, 0); /* never bad: no feature comes twice */
}

const struct drps_format drps_format_idx = {
    .name = "idx",
    .has_classes = 1,
    .has_fields = 1,
    .open = idx_open,
    .close = idx_close,
    .begin_file = idx_begin_file,
    .looks = idx_looks,
    .ready = idx_ready,
    .take = idx_take,
};
