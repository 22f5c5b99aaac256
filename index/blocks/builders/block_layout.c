/*
 * What a block builder returns is released here: in a file of its own, because builders need it
 * and the table of builders needs them.
 */
#include <stdlib.h>

#include "index/blocks/builders/drps_builder.h"

void drps_block_layout_free(struct block_layout *layout)
{
    free(layout->order);
    free(layout->first);
    *layout = (struct block_layout){0};
}
