/* What drps-index says of the columns of csv data and JSON lines. Private to tools/index/. */
#ifndef DRPS_TOOLS_INDEX_COLUMNS_H
#define DRPS_TOOLS_INDEX_COLUMNS_H

#include <stddef.h>

#include <jansson.h>

#include "index/reader/drps_reader.h"
#include "tools/drps_cli.h"

struct index_columns {
    const struct drps_cli *cli;
    int shown;    /* the data has some */
    json_t *list; /* own: a list of them; NULL: there are none, or no memory */
};

/* For struct drps_reader_options; ctx is the columns. Tells the columns of each kind, what may not
 * be meant, and with --verbose each column on a line. */
void index_columns_show(void *ctx, const struct drps_reader_column *columns, size_t n);

#endif
