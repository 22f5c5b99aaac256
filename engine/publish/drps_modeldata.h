/*
 * Data for a model: text in any input format, read as the model's training data was unless options
 * say otherwise, with features by the model's fields. Shared inside engine/.
 */
#ifndef DRPS_ENGINE_PUBLISH_MODELDATA_H
#define DRPS_ENGINE_PUBLISH_MODELDATA_H

#include <stddef.h>
#include <stdint.h>

#include "engine/publish/drps_modeldir.h"
#include "index/hashing/drps_hasher.h"
#include "index/reader/drps_reader.h"

/* An open list of inputs. Caller's storage; fields are for reading. */
struct drps_modeldata {
    const struct drps_modeldir_info *info; /* borrowed */
    struct drps_reader *reader;            /* own */
    struct drps_samples piece;             /* own: for drps_reader_next() */
    int64_t *fields;     /* own: reader's field -> model's, -1: the model has no such field; NULL:
                            the same */
    size_t fields_known; /* of the reader's, where `fields` is not NULL */
    struct drps_hasher *hasher; /* own; NULL: features are not hashed */
    char *csv_kinds;            /* own: what the columns mean; NULL: what `reader` says */
    uint64_t *keys;             /* own: [keys_cap] of one sample */
    float *values;              /* own: [values_cap] */
    uint16_t *of;               /* own: [of_cap] fields, of a field-aware model */
    uint32_t *places;           /* own: [places_cap] */
    float *numbers;             /* own: [numbers_cap] by the model's fields */
    size_t keys_cap, values_cap, of_cap, places_cap, numbers_cap;
};

/* A sample's features by the model's fields, without those of fields that it does not have. */
struct drps_modeldata_sample {
    float label, weight;
    const uint64_t *keys; /* [n], as `values` borrowed until the next call */
    const float *values;
    const uint16_t *fields; /* NULL: the model is not field-aware */
    uint32_t numbers_each;  /* numbers by place, as many as the model's fields; 0: there are none */
    const float *numbers;   /* [numbers_each] */
    const uint32_t *places; /* which entries of the piece they are, or which bins; NULL: `first`,
                               first + 1, ... */
    size_t first, n;
};

/*
 * Open inputs [n], "-" for stdin. Of `reader` the caller sets all that it wants other than in
 * training, memory, log and stop; format, seed, classes and columns that it leaves out are the
 * model's. A model of ratings has its users and items in columns that are called so, of csv and
 * jsonl. `model` is a name for texts. Errors are those of drps_reader_open(); DRPS_E_CONFIG:
 * features are numbers and the model's are strings, or the other way round. Close it in either
 * case. Strings of `reader`, inputs and info are borrowed until then.
 */
DRPS_MUST_CHECK
int drps_modeldata_open(const struct drps_io *io, const char *model,
                        const struct drps_modeldir_info *info, const char *const *inputs, size_t n,
                        const struct drps_reader_options *reader, struct drps_modeldata *d,
                        struct drps_err *err);
void drps_modeldata_close(struct drps_modeldata *d); /* zeroed and half-opened too */

/* The key by which the model knows entry j of the piece; *field_out is the model's field, 0 where
 * names are numbers. Returns 1, or 0: the model has no such field. */
int drps_modeldata_key(const struct drps_modeldata *d, size_t j, uint64_t *key_out,
                       uint32_t *field_out);

/* What entry j of the piece is called: its model's field, as drps_modeldata_key() has it, and its
 * text [bytes], borrowed until the piece changes; NULL: its name is the key. Where features are
 * hashed, j is a bin, and so is its name. */
struct drps_modeldata_name {
    uint64_t key;
    uint32_t field;
    const char *text;
    size_t bytes;
};
void drps_modeldata_name(const struct drps_modeldata *d, size_t j, struct drps_modeldata_name *out);

/* The most features that sample i of the piece has for the model. */
size_t drps_modeldata_most(const struct drps_modeldata *d, size_t i);

/* Sample i of the piece. -ENOMEM; DRPS_E_FORMAT: values that hashing adds up become infinite. */
DRPS_MUST_CHECK
int drps_modeldata_sample(struct drps_modeldata *d, size_t i, struct drps_modeldata_sample *out,
                          struct drps_err *err);

#endif
