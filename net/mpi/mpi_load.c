/* Finds the module that is linked with MPI: where the program is installed, in the folder for
 * libraries beside its own. */
#include "net/mpi/mpi_internal.h"

#ifdef DRPS_WITH_MPI

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* DRPS_MPI_MODULE: the module's path as seen from the programs' folder. */
static int module_path(char out[PATH_MAX], struct drps_err *err)
{
    char program[PATH_MAX];
    const ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);
    if (n < 0) return drps_err_set(err, -errno, "/proc/self/exe: %s", strerror(errno));
    program[n] = '\0';
    char *name = strrchr(program, '/');
    if (name) *name = '\0';
    if (snprintf(out, PATH_MAX, "%s/%s", program, DRPS_MPI_MODULE) >= PATH_MAX)
        return drps_err_set(err, -ENAMETOOLONG, "%s/%s: too long a path", program, DRPS_MPI_MODULE);
    return 0;
}

int drps_mpi_load(const struct net_mpi_calls **calls_out, struct drps_err *err)
{
    char path[PATH_MAX];
    *calls_out = NULL;
    const int rc = module_path(path, err);
    if (rc < 0) return rc;
    /* Open MPI loads parts of itself that look for its symbols. It stays loaded: it has threads. */
    void *module = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (!module)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "MPI cannot be loaded: %s (the package drps-mpi has it)", dlerror());
    const struct net_mpi_calls *calls = dlsym(module, "drps_mpi_calls");
    if (!calls || calls->version != NET_MPI_CALLS_VERSION)
        return drps_err_set(err, DRPS_E_CONFIG, "%s is of another version of drps", path);
    *calls_out = calls;
    return 0;
}

#else

int drps_mpi_load(const struct net_mpi_calls **calls_out, struct drps_err *err)
{
    *calls_out = NULL;
    return drps_err_set(err, DRPS_E_CONFIG, "this build has no MPI (DRPS_WITH_MPI)");
}

#endif
