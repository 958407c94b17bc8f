// The file or memory that a page belongs to.
#pragma once

#include "bpf/kernel.h"
#include "families/paths/inodes.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#define PAGE_SHIFT 12
#define S_IFMT 0170000
#define S_IFBLK 0060000
// Mark in page.compound_head: the rest is the address of the first page. Mark in mapping: the page
// is not in the page cache, but belongs to memory of a process.
#define IS_TAIL 1ull
#define IS_NO_CACHE 3ull
// Magic numbers of file systems in memory (include/uapi/linux/magic.h), which include memory that
// processes share.
#define TMPFS_MAGIC 0x01021994
#define HUGETLBFS_MAGIC 0x958458f6

// Location of a piece of memory in the page cache.
struct cached {
	struct inode *inode; // NULL: not in the page cache
	u64 offset;	     // offset of its first byte in the file
};

static __always_inline struct bio_vec *vector_at(struct bio_vec *vectors, u32 number)
{
	return (void *)vectors + (u64)number * bpf_core_type_size(struct bio_vec);
}

// The first of the pages that form one folio with this one.
static __always_inline struct folio *folio_of(struct page *page)
{
	u64 head = BPF_CORE_READ(page, compound_head);

	return (void *)(head & IS_TAIL ? head - IS_TAIL : (u64)page);
}

// The inode whose cache contains the pages; NULL: none. For memory that processes share it is NULL:
// a device accesses it only by direct I/O, for another file.
static __always_inline struct inode *inode_of(struct folio *folio)
{
	struct address_space *cache = BPF_CORE_READ(folio, mapping);

	if (!cache || (u64)cache & IS_NO_CACHE)
		return 0;
	struct inode *inode = BPF_CORE_READ(cache, host);
	u64 magic = inode ? BPF_CORE_READ(inode, i_sb, s_magic) : TMPFS_MAGIC;
	return magic == TMPFS_MAGIC || magic == HUGETLBFS_MAGIC ? 0 : inode;
}

static __always_inline struct cached cached_at(struct bio_vec *vectors, u32 number)
{
	struct bio_vec *vector = vector_at(vectors, number);
	struct page *page = BPF_CORE_READ(vector, bv_page);
	struct folio *folio = folio_of(page);
	struct cached found = { .inode = inode_of(folio) };

	if (!found.inode)
		return found;
	u64 index = BPF_CORE_READ(folio, index) + ((u64)page - (u64)folio) / bpf_core_type_size(struct page);
	found.offset = (index << PAGE_SHIFT) + BPF_CORE_READ(vector, bv_offset);
	return found;
}

static __always_inline bool is_of_device(struct inode *inode)
{
	return (BPF_CORE_READ(inode, i_mode) & S_IFMT) == S_IFBLK;
}

static __always_inline struct inode_key key_of_inode(struct inode *inode)
{
	struct inode_key key = {
		.number = BPF_CORE_READ(inode, i_ino),
		.device = BPF_CORE_READ(inode, i_sb, s_dev),
		.generation = BPF_CORE_READ(inode, i_generation),
	};

	return key;
}
