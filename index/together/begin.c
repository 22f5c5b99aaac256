/* How ranks begin: alike, each with its inputs and a folder (drps_together.h). */
#include "index/together/begin.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "index/drps_index.h"
#include "index/plan/drps_plan_files.h"

/* Checks that the plan's folder can be made on this rank, whose disk may be its own. Rank 0 finds
 * that out when it begins; another rank gives its folder this name only when all is made, which is
 * too late for a refusal. Only a plan is replaced. */
static int check_out(const struct drps_index_options *o, struct drps_err *err)
{
    if (access(o->out, F_OK)) return 0;
    if (!o->force)
        return drps_err_set(err, -EEXIST, "%s exists: name another folder, or have it replaced",
                            o->out);
    char *manifest = drps_path_join(o->out, DRPS_FILE_MANIFEST);
    int rc = manifest ? access(manifest, F_OK) : -1;
    if (!manifest)
        rc = drps_err_set(err, -ENOMEM, "no memory for a path");
    else if (rc)
        rc = drps_err_set(err, -EEXIST, "%s holds no %s, and is not replaced: name another folder",
                          o->out, DRPS_FILE_MANIFEST);
    free(manifest);
    return rc;
}

int drps_together_begin(const struct swap_ranks *ranks, struct drps_index_options *options,
                        char **out_own, struct drps_err *err)
{
    *out_own = NULL;
    int rc = drps_together_check_options(ranks, options, err);
    if (rc == 0) rc = drps_together_check_inputs(ranks, options, err);
    if (rc < 0 || !ranks->rank) return rc;
    rc = check_out(options, err);
    if (rc < 0) return rc;
    if (asprintf(out_own, "%s.rank-%" PRIu32, options->out, ranks->rank) >= 0) return 0;
    *out_own = NULL;
    return drps_err_set(err, -ENOMEM, "no memory for a path");
}
