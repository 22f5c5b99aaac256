/*
 * The names of an earlier plan, which keep their rows: looked up while new names get theirs, and
 * merged with these into the new dictionary. Private to index/dictionary/.
 */
#ifndef DRPS_INDEX_DICTIONARY_DICT_BASE_H
#define DRPS_INDEX_DICTIONARY_DICT_BASE_H

#include "index/dictionary/dict_internal.h"
#include "index/plan/drps_names.h"

struct dict_base; /* opaque */

/* Open the names in d->options.base_dir. */
DRPS_MUST_CHECK
int drps_dict_base_open(const struct dict *d, struct dict_base **b_out, struct drps_err *err);
void drps_dict_base_close(struct dict_base *b); /* NULL-safe */

/* The row that the earlier plan has for a key; DRPS_NO_ROW: none, as without an earlier plan (b
 * NULL). Keys in order cost a page once. DRPS_E_CORRUPT. */
DRPS_MUST_CHECK
int drps_dict_base_row(struct dict_base *b, uint64_t key, uint32_t *row_out, struct drps_err *err);

/* ---- The new dictionary ---- */

struct dict_names; /* opaque: names.rec of a folder, being written */

/* Names of `base` (borrowed, NULL: there are none) come in by themselves. */
DRPS_MUST_CHECK
int drps_dict_names_open(const struct dict *d, struct dict_base *base, const char *dir,
                         struct dict_names **n_out, struct drps_err *err);
/* Keys strictly increasing. One that the base has is the base's: DRPS_E_CONFIG unless they are the
 * same name. */
DRPS_MUST_CHECK
int drps_dict_names_add(struct dict_names *n, const struct drps_names_entry *name,
                        struct drps_err *err);
DRPS_MUST_CHECK
int drps_dict_names_finish(struct dict_names *n, struct drps_err *err);
void drps_dict_names_close(struct dict_names *n); /* NULL-safe */

#endif
