/* What can be wrong with options whatever the format is, and with paths. */
#include <string.h>

#include "index/reader/open/open.h"

static const uint64_t min_memory_bytes = 1u << 20;

static int check_weight_options(const struct drps_reader_options *o, size_t n_paths,
                                struct drps_err *err)
{
    if ((o->weights_n != 0) + (o->weight != NULL) + (o->clicks || o->impressions) > 1)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "weights come from a file beside the data, from a column, or from "
                            "clicks and impressions: give one of these");
    if (!o->clicks != !o->impressions)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "clicks and impressions are two columns: name both");
    if (o->clicks && o->csv_label)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "clicks and impressions are the labels: name no label column");
    for (size_t i = 0; i < o->weights_n; i++)
        if (strcmp(o->weights[i], "-") == 0)
            return drps_err_set(err, DRPS_E_CONFIG,
                                "weights beside the data are in a file: '-' (stdin) is none");
    if (o->weights_n && o->weights_n != n_paths)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%zu files of weights for %zu of data: name one for each, in the same "
                            "order",
                            o->weights_n, n_paths);
    return 0;
}

static int check_label_files(const struct drps_reader_options *o, size_t n_paths,
                             struct drps_err *err)
{
    for (size_t i = 0; i < o->label_files_n; i++)
        if (strcmp(o->label_files[i], "-") == 0)
            return drps_err_set(err, DRPS_E_CONFIG,
                                "labels beside the data are in a file: '-' (stdin) is none");
    if (!o->label_files_n || o->label_files_n == n_paths) return 0;
    return drps_err_set(err, DRPS_E_CONFIG,
                        "%zu files of labels for %zu of data: name one for each, in the same order",
                        o->label_files_n, n_paths);
}

int drps_reader_check_beside(const struct drps_reader_options *o, size_t n_paths,
                             struct drps_err *err)
{
    int rc = check_weight_options(o, n_paths, err);
    return rc == 0 ? check_label_files(o, n_paths, err) : rc;
}

int drps_reader_check_options(const struct drps_reader_options *o, struct drps_err *err)
{
    if (o->memory_bytes < min_memory_bytes)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "the reader's memory is %llu bytes, it needs at least 1 MiB",
                            (unsigned long long)o->memory_bytes);
    char c = o->csv_separator;
    if (c == '\n' || c == '\r' || c == '"' || c == '.' || c == '-' || c == '+' ||
        (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
        (unsigned char)c >= 0x80)
        return drps_err_set(err, DRPS_E_CONFIG, "byte 0x%02x cannot separate csv columns",
                            (unsigned char)c);
    return 0;
}

int drps_reader_check_paths(const struct drps_io *io, const char *const *paths, size_t n,
                            struct inputs *out, struct drps_err *err)
{
    int stdins = 0;
    memset(out, 0, sizeof(*out));
    if (n == 0) return drps_err_set(err, DRPS_E_CONFIG, "no input files");
    for (size_t i = 0; i < n; i++) {
        uint64_t bytes = 0;
        int fd;
        if (strcmp(paths[i], "-") == 0) {
            if (++stdins > 1) return drps_err_set(err, DRPS_E_CONFIG, "'-' (stdin) is named twice");
            out->pipes = 1;
            continue;
        }
        int rc = drps_io_open_data(io, paths[i], 1, &fd, err);
        if (rc < 0) return rc;
        out->pipes |= rc;
        if (rc == 0) rc = drps_io_size(io, fd, paths[i], &bytes, err);
        drps_io_close(io, fd);
        if (rc < 0) return rc;
        out->bytes += bytes;
    }
    return 0;
}
