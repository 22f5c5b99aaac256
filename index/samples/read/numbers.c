/* Packing of a sample's numbers by place. */
#include "index/samples/read/numbers.h"

#include <errno.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "index/plan/codec/drps_dense.h"

int sample_numbers_pack(struct sample_numbers *p, const float *numbers, uint32_t each,
                        struct spool_sample *sample, struct drps_err *err)
{
    if (drps_array_reserve(&p->levels, &p->levels_cap, each, 1) ||
        drps_array_reserve(&p->packed, &p->packed_cap, (size_t)drps_dense_bound(each), 1))
        return drps_err_set(err, -ENOMEM, "no memory for a sample of %u numbers", each);
    sample->numbers = p->packed;
    sample->numbers_bytes = (uint32_t)drps_dense_pack_floats(numbers, each, p->levels, p->packed);
    return 0;
}

void sample_numbers_destroy(struct sample_numbers *p)
{
    free(p->levels);
    free(p->packed);
}
