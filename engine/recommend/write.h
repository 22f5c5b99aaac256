/* Results as lines of text: a line an item, or a JSON object a query. Private to engine/recommend/.
 */
#ifndef DRPS_ENGINE_RECOMMEND_WRITE_H
#define DRPS_ENGINE_RECOMMEND_WRITE_H

#include <stddef.h>

#include "base/folder/drps_textfile.h"
#include "engine/recommend/input/drps_rownames.h"
#include "engine/recommend/math/drps_top.h"

struct drps_lines_out {
    struct drps_textfile *out;   /* borrowed */
    struct drps_rownames *items; /* borrowed: names of items */
    int json;
    const char *query_key; /* in JSON: "user" or "item" */
};

/*
 * Write what was found for the query `name` [n], best first. Fields are query, rank from 1, item
 * and score, with tabs between them; a tab, a line end or a backslash in a name becomes \t, \n, \r
 * or \\. Or {"user": name, "items": [{"item": name, "score": score}, ...]}; bytes of a name that
 * are no UTF-8 become U+FFFD.
 */
DRPS_MUST_CHECK
int drps_lines_write(const struct drps_lines_out *w, const char *name, size_t n,
                     const struct drps_top *found, struct drps_err *err);

#endif
