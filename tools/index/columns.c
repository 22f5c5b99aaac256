/* The columns of csv data, as lines and as JSON. */
#include "tools/index/columns.h"

#include "base/folder/drps_manifest.h"

enum { COLUMNS_TOLD = 100 };

static const char *kind_name(enum drps_column_kind kind)
{
    static const char *const names[] = {
        [DRPS_COLUMN_IGNORE] = "ignore",          [DRPS_COLUMN_LABEL] = "label",
        [DRPS_COLUMN_NUMBER] = "number",          [DRPS_COLUMN_CATEGORY] = "category",
        [DRPS_COLUMN_WEIGHT] = "weight",          [DRPS_COLUMN_CLICKS] = "clicks",
        [DRPS_COLUMN_IMPRESSIONS] = "impressions"};
    return names[kind];
}

void index_columns_show(void *ctx, const struct drps_reader_column *columns, size_t n)
{
    struct index_columns *c = ctx;
    const struct drps_log *log = &c->cli->log;
    c->shown = 1;
    c->list = json_array();
    for (size_t i = 0; i < n; i++)
        drps_manifest_append(&c->list,
                             json_pack("{s:s, s:s, s:s}", "name", columns[i].name, "kind",
                                       kind_name(columns[i].kind), "why", columns[i].why));
    for (size_t i = 0, end; i < n; i = end) {
        const char *kind = kind_name(columns[i].kind);
        for (end = i + 1; n > COLUMNS_TOLD && end < n && columns[end].kind == columns[i].kind;)
            end++;
        if (end - i > 1)
            drps_log(log, DRPS_LOG_INFO, "%zu columns from %s to %s: %s", end - i, columns[i].name,
                     columns[end - 1].name, kind);
        else
            drps_log(log, DRPS_LOG_INFO, "column %s: %s (%s)", columns[i].name, kind,
                     columns[i].why);
    }
}
