/* What a reader says of its input, and its end. */
#include <stdlib.h>

#include "index/reader/drps_parse.h"

void drps_reader_close(struct drps_reader *r)
{
    if (!r) return;
    if (r->format && r->format->close && r->state) r->format->close(r);
    drps_chunks_destroy(&r->chunks);
    drps_weights_destroy(&r->weights);
    free(r->fields);
    free(r);
}

const char *drps_reader_format(const struct drps_reader *r)
{
    return r->format->name;
}

int drps_reader_has_classes(const struct drps_reader *r)
{
    return drps_reads_classes(&r->options);
}

enum drps_reader_labels drps_reader_labels(const struct drps_reader *r)
{
    return r->options.labels;
}

int drps_reader_has_names(const struct drps_reader *r)
{
    return r->format->has_names;
}

const char *const *drps_reader_fields(const struct drps_reader *r, size_t *n_out)
{
    *n_out = r->n_fields;
    return r->fields;
}

int drps_reader_has_numbers(const struct drps_reader *r)
{
    return r->numbers_each != 0;
}

uint32_t drps_reader_field_count(const struct drps_reader *r)
{
    return r->field_count;
}

uint64_t drps_reader_file_bytes(const struct drps_reader *r)
{
    return r->chunks.in.all_bytes;
}

uint64_t drps_reader_lines(const struct drps_reader *r)
{
    return r->lines;
}

uint64_t drps_reader_bytes(const struct drps_reader *r)
{
    return r->bytes;
}

uint64_t drps_reader_skipped(const struct drps_reader *r)
{
    return r->skipped;
}

uint64_t drps_reader_blank(const struct drps_reader *r)
{
    return r->format && r->format->end_piece ? 0 : r->blank;
}

uint64_t drps_reader_weightless(const struct drps_reader *r)
{
    return r->weightless;
}
