/* Says what an export has written; engine/export/ writes it. */
#include "tools/stat/export.h"

#include <stdio.h>
#include <string.h>

#include "base/folder/drps_manifest.h"

static int print_json(const struct drps_export_result *r, struct drps_err *err)
{
    json_t *j = json_object();
    drps_manifest_put(&j, "as", json_string(r->as));
    drps_manifest_put(&j, "rows", drps_json_count(r->rows));
    drps_manifest_put(&j, "dim", drps_json_count(r->dim));
    return drps_cli_json_print(j, err);
}

int stat_export(struct drps_cli *cli, const struct drps_io *io,
                const struct drps_export_options *options, const char *path, struct drps_err *err)
{
    struct drps_export_options o = *options;
    struct drps_export_result result;
    o.model = path;
    int rc = drps_export_run(io, &o, &result, err);
    if (rc < 0) return rc;
    if (result.hashed)
        drps_log(&cli->log, DRPS_LOG_WARN,
                 "features are hashed: names are numbers of bins, and who scores with these rows "
                 "has to hash as drps-index does (docs/formats.md)");
    if (cli->json) return print_json(&result, err);
    if (cli->log.level < DRPS_LOG_INFO) return 0;
    (void)fprintf(strcmp(o.output, "-") == 0 ? stderr : stdout, "%s of %u %s, as %s\n",
                  drps_cli_counted(result.rows, "row"), result.dim,
                  result.dim == 1 ? "float" : "floats", result.as);
    return 0;
}
