/* Tests of what runs on a device: the library of kernels is the program's argument, or the one that
 * is installed. */
#ifndef DRPS_TESTS_SUPPORT_ON_DEVICE_H
#define DRPS_TESTS_SUPPORT_ON_DEVICE_H

#include "device/drps_device_use.h"

/* Opens the device into *use, calls `tests`, and closes it. Returns what the program is to return:
 * what `tests` returned, 77 where there is no device, 1 where it cannot be opened. */
int run_on_device(int argc, char **argv, struct drps_device_use *use, int (*tests)(void));

#endif
