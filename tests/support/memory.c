/*
 * Tests have little memory, on whatever machine: what is sized by half of the memory there is takes
 * a gigabyte in each of their thousands of runs otherwise, and sanitizers mark every byte of it.
 * The linker puts this in place of the library's function.
 */
#include "base/drps_size.h"

enum { MOST = 512 << 20 };

uint64_t __real_drps_memory_available(void);
uint64_t __wrap_drps_memory_available(void);

uint64_t __wrap_drps_memory_available(void)
{
    const uint64_t here = __real_drps_memory_available();
    return here < MOST ? here : MOST;
}
