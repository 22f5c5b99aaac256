/*
 * The emulated device of DRPS_TEST_EMULATED_DEVICE, a path, passed off as a real one: the only kind
 * that `--device auto` takes.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "device/drps_device.h"

const struct drps_device_ops *drps_device_table(void)
{
    static struct drps_device_ops ops;
    const struct drps_device_ops *(*table)(void);
    const char *path = getenv("DRPS_TEST_EMULATED_DEVICE");
    void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    void *symbol = library ? dlsym(library, "drps_device_table") : NULL;
    if (!symbol) abort();
    memcpy(&table, &symbol, sizeof(table));
    ops = *table();
    ops.emulated = 0;
    return &ops;
}
