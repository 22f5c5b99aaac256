/* MNIST's names of images and labels, and compressions behind them. */
#include "index/reader/idx/drps_idx_names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const packed[] = {"", ".gz", ".xz", ".zst"};
enum { PACKED = sizeof(packed) / sizeof(packed[0]) };

/* Find "images-idx" with a digit in the last part of a path. */
static const char *find_images(const char *path)
{
    static const char *const words[] = {"images-idx", "images.idx"};
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        const char *at = strstr(name, words[i]);
        const char *digit = at ? at + strlen(words[i]) : NULL;
        if (digit && *digit >= '0' && *digit <= '9') return at;
    }
    return NULL;
}

/* Bytes of the name's end that say how the file is compressed. */
static size_t packed_bytes(const char *path)
{
    const size_t n = strlen(path);
    for (size_t i = 1; i < PACKED; i++) {
        const size_t k = strlen(packed[i]);
        if (n > k && strcmp(path + n - k, packed[i]) == 0) return k;
    }
    return 0;
}

/* The name of the labels, compressed in this way; NULL: no memory. */
static char *name_labels(const char *items, const char *images, const char *suffix)
{
    static const size_t word = sizeof("images") - 1, kind = sizeof("-idx3") - 1;
    const char *rest = images + word + kind;
    char *out;
    const int rest_bytes = (int)(strlen(rest) - packed_bytes(rest));
    if (asprintf(&out, "%.*slabels%cidx1%.*s%s", (int)(images - items), items, images[word],
                 rest_bytes, rest, suffix) < 0)
        return NULL;
    return out;
}

/* Returns 1: the file is there, 0: it is not. */
static int is_there(const struct drps_io *io, const char *path, struct drps_err *err)
{
    struct drps_err why = DRPS_ERR_INIT;
    int fd;
    int rc = drps_io_open_data(io, path, 1, &fd, &why);
    if (rc == -ENOENT) return 0;
    if (rc < 0) return drps_err_set(err, rc, "%s", why.text);
    drps_io_close(io, fd);
    return 1;
}

int drps_idx_labels_path(const struct drps_io *io, const char *items, char **path_out,
                         int *found_out, struct drps_err *err)
{
    const char *images = find_images(items);
    *path_out = NULL;
    *found_out = 0;
    if (!images) return 0;
    char *first = name_labels(items, images, items + strlen(items) - packed_bytes(items));
    int rc = first ? is_there(io, first, err) : -ENOMEM;
    *path_out = first;
    for (size_t i = 0; i < PACKED && rc == 0; i++) {
        char *other = name_labels(items, images, packed[i]);
        rc = other ? is_there(io, other, err) : -ENOMEM;
        if (rc == 1) {
            free(first);
            *path_out = other;
        } else {
            free(other);
        }
    }
    *found_out = rc == 1;
    if (rc >= 0) return 0;
    free(*path_out);
    *path_out = NULL;
    return rc == -ENOMEM ? drps_err_set(err, rc, "no memory for a path") : rc;
}
