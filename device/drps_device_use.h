/*
 * How drps gets at a device: the library of kernels is opened at run time, and then its device.
 * Shared by storage/ and engine/.
 */
#ifndef DRPS_DEVICE_USE_H
#define DRPS_DEVICE_USE_H

#include "base/drps_err.h"
#include "device/drps_device.h"

/* A device as one thread calls it. The members but `why` may be copied for another thread. */
struct drps_device_use {
    const struct drps_device_ops *ops; /* NULL: no device is open */
    struct drps_device *dev;
    char why[DRPS_DEVICE_TEXT_BYTES]; /* of the last call that failed */
};

/* Who uses which events. */
enum {
    DRPS_DEVICE_EVENTS_WORKER = 0, /* below the next one */
    DRPS_DEVICE_EVENTS_STORE = 32
};

/*
 * Open the library in file `path` and its first device. `path` NULL: the library that is installed
 * with drps. DRPS_E_CONFIG: this build has none; DRPS_E_NOT_FOUND: it cannot be loaded, or there is
 * no device; DRPS_E_VERSION: the library is of another version of drps.
 */
DRPS_MUST_CHECK
int drps_device_open(const char *path, struct drps_device_use *out, struct drps_err *err);
void drps_device_close(struct drps_device_use *use); /* NULL-safe; not open too */

/* Passes on what a call came to. */
static inline int drps_device_told(int rc, const struct drps_device_use *use, struct drps_err *err)
{
    return rc < 0 ? drps_err_set(err, rc, "the device %s: %s", use->ops->name, use->why) : rc;
}

/* DRPS_DEVICE_CALL(use, err, upload, queue, to, pinned, bytes): a call of the table. */
#define DRPS_DEVICE_CALL(use, err, function, ...)                                                  \
    drps_device_told((use)->ops->function((use)->dev, __VA_ARGS__, (use)->why), use, err)

#endif
