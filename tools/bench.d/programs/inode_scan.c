// Counts inodes in use, extents and fragments of an ext file system by libext2fs: the peer of `sysdock disk scan` on an image or device.
// Build: cc -O2 inode_scan.c -lext2fs -lcom_err. No names are read, nothing is written.
#include <stdio.h>
#include <ext2fs/ext2fs.h>

struct count { long extents, fragments; blk64_t next; };

static int block(ext2_filsys fs, blk64_t *at, e2_blkcnt_t logical, blk64_t ref, int ref_offset, void *data) {
    struct count *count = data;
    (void)fs; (void)logical; (void)ref; (void)ref_offset;
    count->fragments += *at != count->next;
    count->next = *at + 1;
    return 0;
}

static void extents(ext2_filsys fs, ext2_ino_t number, struct ext2_inode *inode, struct count *count) {
    ext2_extent_handle_t handle;
    struct ext2fs_extent extent;
    if (ext2fs_extent_open2(fs, number, inode, &handle)) return;
    blk64_t physical = 0, logical = 0;
    int first = 1;
    for (int op = EXT2_EXTENT_ROOT; !ext2fs_extent_get(handle, op, &extent); op = EXT2_EXTENT_NEXT) {
        if (!(extent.e_flags & EXT2_EXTENT_FLAGS_LEAF) || (extent.e_flags & EXT2_EXTENT_FLAGS_SECOND_VISIT)) continue;
        count->extents++;
        count->fragments += first || extent.e_pblk - physical != extent.e_lblk - logical;
        physical = extent.e_pblk, logical = extent.e_lblk, first = 0;
    }
    ext2fs_extent_free(handle);
}

int main(int count, char **arguments) {
    ext2_filsys fs;
    ext2_inode_scan scan;
    ext2_ino_t number;
    struct ext2_inode inode;
    struct count sum = {0};
    long inodes = 0;
    if (count != 2 || ext2fs_open(arguments[1], EXT2_FLAG_64BITS, 0, 0, unix_io_manager, &fs)) return 1;
    if (ext2fs_read_inode_bitmap(fs) || ext2fs_open_inode_scan(fs, 64, &scan)) return 1;
    while (!ext2fs_get_next_inode(scan, &number, &inode) && number) {
        if (!ext2fs_test_inode_bitmap2(fs->inode_map, number) || number < fs->super->s_first_ino && number != EXT2_ROOT_INO) continue;
        inodes++;
        if (!ext2fs_inode_has_valid_blocks2(fs, &inode)) continue;
        sum.next = 0;
        if (inode.i_flags & EXT4_EXTENTS_FL) extents(fs, number, &inode, &sum);
        else ext2fs_block_iterate3(fs, number, BLOCK_FLAG_DATA_ONLY | BLOCK_FLAG_READ_ONLY, 0, block, &sum);
    }
    printf("%ld inodes %ld extents %ld fragments\n", inodes, sum.extents, sum.fragments);
    return 0;
}
