/* Ranks from the environment variables of launchers; each launcher is a line of a table. */
#include "net/drps_launch.h"

#include <stdlib.h>
#include <string.h>

#include "net/drps_net.h"
#include "net/drps_peers.h"

static const struct {
    const char *launcher, *rank, *count; /* variables; count NULL: the launcher does not say */
} launchers[] = {
    {"mpirun (Open MPI)", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"mpiexec (PMI)", "PMI_RANK", "PMI_SIZE"},
    {"srun", "SLURM_PROCID", "SLURM_NTASKS"},
    {"Kubernetes indexed job", "JOB_COMPLETION_INDEX", NULL},
};

static int number(const char *name, const char *text, uint32_t *out, struct drps_err *err)
{
    const size_t n = strlen(text);
    if (n < 1 || n > 9 || strspn(text, "0123456789") != n)
        return drps_err_set(err, DRPS_E_CONFIG, "%s=%s in the environment is no number", name,
                            text);
    *out = (uint32_t)strtoul(text, NULL, 10);
    return 0;
}

static int find(size_t i, const char *rank, uint32_t count, struct drps_launch *launch,
                struct drps_err *err)
{
    const char *name = launchers[i].count;
    const char *text = name ? getenv(name) : NULL;
    launch->launcher = launchers[i].launcher;
    launch->count = count;
    int rc = number(launchers[i].rank, rank, &launch->rank, err);
    if (rc == 0 && text) rc = number(name, text, &launch->count, err);
    if (rc < 0) return rc;
    if (name && !text)
        return drps_err_set(err, DRPS_E_CONFIG, "%s is set in the environment and %s is not",
                            launchers[i].rank, name);
    if (!name && !count)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s=%s, but nothing says how many ranks there are: give a peers file",
                            launchers[i].rank, rank);
    if (count && launch->count != count)
        return drps_err_set(err, DRPS_E_CONFIG, "%s started %u ranks, and there are %u peers",
                            launch->launcher, launch->count, count);
    if (launch->rank >= launch->count || launch->count > DRPS_NET_RANKS_MAX)
        return drps_err_set(err, DRPS_E_CONFIG, "%s says rank %u of %u", launch->launcher,
                            launch->rank, launch->count);
    return 1;
}

int drps_launch_find(uint32_t count, struct drps_launch *launch_out, struct drps_err *err)
{
    struct drps_launch launch = {NULL, 0, 0};
    memset(launch_out, 0, sizeof(*launch_out));
    for (size_t i = 0; i < sizeof(launchers) / sizeof(*launchers); i++) {
        const char *rank = getenv(launchers[i].rank);
        if (!rank) continue;
        const int rc = find(i, rank, count, &launch, err);
        if (rc == 1) *launch_out = launch;
        return rc;
    }
    return 0;
}

int drps_launch_mpi(struct drps_launch *launch_out, struct drps_err *err)
{
    int rc = drps_launch_find(0, launch_out, err);
    if (rc == 0)
        rc = drps_err_set(err, DRPS_E_CONFIG,
                          "ranks that talk over MPI are started by mpirun or srun, and this "
                          "process was not");
    return rc < 0 ? rc : 0;
}

int drps_launch_rank(const char *peers_path, const char *option, uint32_t *rank_out,
                     struct drps_err *err)
{
    struct drps_launch launch = {NULL, 0, 0};
    struct drps_peers peers = {0};
    *rank_out = 0;
    int rc = drps_peers_read(drps_io_os(), peers_path, &peers, err);
    if (rc == 0) rc = drps_launch_find(peers.count, &launch, err);
    if (rc == 0)
        rc = drps_err_set(err, DRPS_E_CONFIG,
                          "which rank is this? Give %s, or start it with mpirun, srun or an "
                          "indexed Kubernetes job",
                          option);
    drps_peers_destroy(&peers);
    *rank_out = launch.rank;
    return rc < 0 ? rc : 0;
}
