/*
 * Who and what a model has: the sets of its users' and of its items' rows, found in the dictionary,
 * and what lists of names make of them. Shared inside engine/recommend/.
 */
#ifndef DRPS_ENGINE_RECOMMEND_INPUT_PEOPLE_H
#define DRPS_ENGINE_RECOMMEND_INPUT_PEOPLE_H

#include "base/drps_io.h"
#include "engine/publish/drps_modeldir.h"
#include "engine/recommend/input/drps_rowset.h"

/* Fields of names, in models of ratings. */
enum { DRPS_FIELD_USER, DRPS_FIELD_ITEM, DRPS_FIELDS };

struct drps_people {
    const struct drps_io *io; /* borrowed, as are the next two */
    struct drps_modeldir *md;
    const char *model; /* its name, for texts */
    struct drps_rowset
        of[DRPS_FIELDS]; /* own: rows of users, of items; callers make less of them */
    int skip_unknown;
    uint64_t unknown; /* names that were skipped */
};

uint64_t drps_people_memory(uint64_t rows); /* with one more set */

/* Read the dictionary. DRPS_E_CORRUPT: it does not fit the rows. Destroy it in either case. */
DRPS_MUST_CHECK
int drps_people_init(struct drps_people *p, const struct drps_io *io, struct drps_modeldir *md,
                     const char *model, int skip_unknown, struct drps_err *err);
void drps_people_destroy(struct drps_people *p); /* zeroed too */

/* Names, as a call has them. */
struct drps_name_list {
    const char *const *names; /* [n] */
    size_t n;
    const char *file; /* one a line, more of them; "-" for stdin; NULL: none */
};

/*
 * Keep in `set`, one of p->of, only what the list names, or with `keep` 0 only the rest. Names are
 * those of `field`. Does nothing where the list has neither names nor a file. DRPS_E_NOT_FOUND:
 * the model does not have a name, which the text tells with file and line. DRPS_E_FORMAT: a line is
 * too long.
 */
DRPS_MUST_CHECK
int drps_people_choose(struct drps_people *p, struct drps_rowset *set, unsigned field,
                       const struct drps_name_list *list, int keep, struct drps_err *err);

#endif
