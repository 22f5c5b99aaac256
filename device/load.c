/* Opens the library of kernels: where the program is installed, in the folder for libraries beside
 * its own, or a file that the caller names. */
#include "device/drps_device_use.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* DRPS_CUDA_LIBRARY: the installed library's path as seen from the programs' folder; not defined
 * where nvcc was not found when drps was built. */
#ifdef DRPS_CUDA_LIBRARY
static int installed_path(char out[PATH_MAX], struct drps_err *err)
{
    char program[PATH_MAX];
    const ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);
    if (n < 0) return drps_err_set(err, -errno, "/proc/self/exe: %s", strerror(errno));
    program[n] = '\0';
    char *name = strrchr(program, '/');
    if (name) *name = '\0';
    if (snprintf(out, PATH_MAX, "%s/%s", program, DRPS_CUDA_LIBRARY) >= PATH_MAX)
        return drps_err_set(err, -ENAMETOOLONG, "%s/%s: too long a path", program,
                            DRPS_CUDA_LIBRARY);
    return 0;
}
#else
static int installed_path(char out[PATH_MAX], struct drps_err *err)
{
    out[0] = '\0';
    return drps_err_set(err, DRPS_E_CONFIG,
                        "this build has no kernels for CUDA (nvcc was not found, or "
                        "DRPS_WITH_CUDA=OFF)");
}
#endif

/* The library stays loaded: what it is linked with has threads. */
static int load(const char *path, const struct drps_device_ops **ops_out, struct drps_err *err)
{
    const struct drps_device_ops *(*table)(void);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return drps_err_set(err, DRPS_E_NOT_FOUND, "kernels cannot be loaded: %s", dlerror());
    void *symbol = dlsym(library, "drps_device_table");
    if (!symbol) {
        (void)dlclose(library);
        return drps_err_set(err, DRPS_E_CONFIG, "%s has no kernels for drps: name another library",
                            path);
    }
    memcpy(&table, &symbol, sizeof(table)); /* as POSIX wants it: C has no such cast */
    const struct drps_device_ops *ops = table();
    if (!ops || ops->version != DRPS_DEVICE_VERSION || ops->bytes != sizeof(*ops))
        return drps_err_set(err, DRPS_E_VERSION, "%s is of another version of drps", path);
    *ops_out = ops;
    return 0;
}

int drps_device_open(const char *path, struct drps_device_use *out, struct drps_err *err)
{
    char installed[PATH_MAX];
    const struct drps_device_ops *ops = NULL;
    memset(out, 0, sizeof(*out));
    int rc = path ? 0 : installed_path(installed, err);
    if (rc == 0) rc = load(path ? path : installed, &ops, err);
    if (rc < 0) return rc;
    rc = ops->open(&out->dev, out->why);
    if (rc < 0) return drps_err_set(err, rc, "no device of %s: %s", ops->name, out->why);
    out->ops = ops;
    return 0;
}

void drps_device_close(struct drps_device_use *use)
{
    if (!use || !use->ops) return;
    use->ops->close(use->dev);
    use->ops = NULL;
}
