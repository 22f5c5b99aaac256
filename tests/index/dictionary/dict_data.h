/* Random samples for tests of the dictionary, and what it makes of them. */
#ifndef DRPS_TESTS_DICT_DATA_H
#define DRPS_TESTS_DICT_DATA_H

#include "index/dictionary/drps_dict.h"
#include "support/scratch.h"

enum { DATA_SEED = 5 };        /* of keys that are hashes */
enum { DATA_TEXT_BYTES = 32 }; /* "name " and the digits of any size_t */

/* Keys are hashes of names; or such of any size, as ids of features are; or the numbers of names.
 */
enum data_keys { DATA_ANY, DATA_NAMES, DATA_NUMBERS, DATA_WAYS };

/* Entry j of sample i is one of `keys` names, small numbers more often. */
struct data {
    size_t n, per_sample, keys;
    uint64_t *key;    /* [n * per_sample]; distinct within a sample */
    uint32_t *number; /* of the name */
    struct drps_name *names;
    char *text;     /* all names, DATA_TEXT_BYTES each */
    uint32_t *time; /* [n] */
    int strings;
};

struct data data_make(struct random_source *r, size_t n, size_t per_sample, size_t keys,
                      enum data_keys way);
void data_free(struct data *d);

/* Provisional ids of samples. */
struct data_ids {
    uint32_t *ids;      /* [n * per_sample] */
    size_t *generation; /* [n] */
};
struct data_ids data_ids_new(const struct data *d);
void data_ids_free(struct data_ids *ids);

/* Add samples [first, last). */
DRPS_MUST_CHECK
int data_add(struct dict *dict, const struct data *d, size_t first, size_t last,
             struct data_ids *ids, struct drps_err *err);
/* Their placed ids, into row_out of all entries. */
DRPS_MUST_CHECK
int data_rows(struct dict *dict, const struct data *d, size_t first, size_t last,
              const struct data_ids *ids, uint32_t *row_out, struct drps_err *err);

#endif
