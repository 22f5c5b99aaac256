/* Opens a reader: its files, its format, and the share that it reads. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "index/reader/open/open.h"

static const uint64_t default_memory_bytes = 64u << 20;

static int check_empty(const struct drps_reader *r, struct drps_err *err)
{
    const struct drps_chunks *c = &r->chunks;
    if (!r->options.refuse_empty || c->carry_n) return 0;
    return drps_err_set(err, DRPS_E_FORMAT, "%s is empty%s: there are no samples to read",
                        c->in.name, c->n_paths > 1 ? ", and so are all files before it" : "");
}

static int choose_format(struct drps_reader *r, struct drps_err *err)
{
    const char *name = r->options.format;
    int rc = drps_chunks_first_file(&r->chunks, err); /* an empty one says nothing of the format */
    if (rc == 0) rc = check_empty(r, err);
    if (rc < 0) return rc;
    if (name && strcmp(name, "auto") != 0) {
        r->format = drps_reader_find_format(name);
        rc = r->format
                 ? 0
                 : drps_err_set(err, DRPS_E_CONFIG, "unknown input format '%s', known are: %s",
                                name, drps_reader_format_list());
    } else {
        rc = drps_reader_detect_format(r, err);
    }
    if (rc == 0) rc = drps_reader_check_format(r, err);
    if (rc == 0 && r->format->open)
        rc = r->format->open(r, r->chunks.carry, r->chunks.carry_n, err);
    return rc == 0 ? drps_numbers_settle(r, err) : rc;
}

static int open_matrix(struct drps_reader *r, const char *name, struct drps_err *err)
{
    r->chunks.in.name = name;
    r->format = drps_reader_find_format(r->options.format ? r->options.format : "libsvm");
    if (r->format != &drps_format_libsvm && r->format != &drps_format_libffm &&
        r->format != &drps_format_ratings)
        return drps_err_set(err, DRPS_E_CONFIG, "%s can only be read as libsvm, libffm or ratings",
                            name);
    int rc = drps_reader_check_format(r, err);
    if (rc == 0 && r->format->open) rc = r->format->open(r, NULL, 0, err);
    if (rc == 0) rc = drps_matrix_source_open(r, err);
    return rc == 0 ? drps_numbers_settle(r, err) : rc;
}

static int open_paths(struct drps_reader *r, const struct drps_io *io, const char *const *paths,
                      size_t n_paths, struct drps_err *err)
{
    struct inputs inputs = {0}, weights, labels;
    int rc = drps_reader_check_beside(&r->options, n_paths, err);
    if (rc == 0) rc = drps_reader_check_paths(io, paths, n_paths, &inputs, err);
    r->read_once = inputs.pipes;
    r->input_bytes = inputs.bytes;
    if (rc == 0 && r->options.weights_n)
        rc = drps_reader_check_paths(io, r->options.weights, r->options.weights_n, &weights, err);
    if (rc == 0 && r->options.label_files_n)
        rc = drps_reader_check_paths(io, r->options.label_files, r->options.label_files_n, &labels,
                                     err);
    if (rc == 0)
        rc = drps_chunks_init(&r->chunks, io, paths, n_paths, r->options.memory_bytes, err);
    r->chunks.in.stop = r->options.stop;
    if (rc == 0 && r->options.weights_n)
        rc = drps_weights_init(&r->weights, io, r->options.stop, r->chunks.in.codec_limit_bytes,
                               err);
    if (rc == 0) rc = choose_format(r, err);
    return rc == 0 ? drps_reader_begin_share(r, err) : rc;
}

int drps_reader_open(const struct drps_io *io, const char *const *paths, size_t n_paths,
                     const struct drps_reader_options *options, struct drps_reader **r_out,
                     struct drps_err *err)
{
    *r_out = NULL;
    struct drps_reader *r = calloc(1, sizeof(*r));
    if (!r) return drps_err_set(err, -ENOMEM, "reader");
    if (options) r->options = *options;
    if (r->options.memory_bytes == 0) r->options.memory_bytes = default_memory_bytes;

    int rc = drps_reader_check_options(&r->options, err);
    if (rc == 0)
        rc = r->options.matrix ? open_matrix(r, paths[0], err)
                               : open_paths(r, io, paths, n_paths, err);
    if (rc == 0) {
        *r_out = r;
        r = NULL;
    }
    drps_reader_close(r);
    return rc;
}
