// What the kernel side writes and `events.rs` reads. Little-endian, all lengths multiples of 8. A reader skips kinds it does not know.
//
// The ring of a CPU holds events one behind another; the spool holds the same bytes. An event is complete when its `position` is
// that of the place in the ring where it stands (the low half of the count of bytes written before it): it is stored last.
#pragma once

enum event_kind {
	EVENT_CALL = 1,   // a system call, at its return
	EVENT_PATH = 2,   // where a file lies that other events name by its id; before or after the first event that names it
	EVENT_FORK = 3,   // a process or thread was made
	EVENT_EXEC = 4,   // a process runs another program
	EVENT_EXIT = 5,   // a thread ended
	EVENT_SIGNAL = 6, // a signal was delivered to a thread
	EVENT_TASK = 7,   // a thread that was there when recording began (written by the user side, from /proc)
	EVENT_FAULT = 8,  // a page fault on a mapped file was served
	EVENT_PAGE_IO = 9, // a request to a block device, for pages
	EVENT_STACK = 16, // a part of a stack, before the call that it belongs to
	EVENT_MAPPED = 17, // code of a file was mapped (of processes that were there before: written by the user side)
	EVENT_PROGRAM = 18, // a program was mapped by the kernel
	EVENT_PYTHON = 19, // where Python stands, before the first part of the stack that it belongs to
	EVENT_PYTHON_CODE = 22, // what a function of Python is called, and its lines; before or after the first event that names it
	EVENT_AIO_SUBMIT = 20, // an operation of libaio begins
	EVENT_AIO_DONE = 21,   // its result was taken
};

// Of event_header.flags, for EVENT_CALL. What a flag announces follows the fixed part, in this order.
enum call_flag {
	CALL_SECOND_FILE = 1, // struct call_second_file
	CALL_MAPPING = 8,     // struct call_mapping
	CALL_STACK = 32,      // u64: id of the stack
	CALL_PATH = 2,        // struct call_path: the path argument
	CALL_SECOND_PATH = 4, // struct call_path: the other path of rename, link, symlink
	CALL_NO_START = 16,   // its start was not seen: start_ns is that of its return
	CALL_UNFINISHED = 64, // it never returned: the thread ended in it, as in exit_group
	CALL_RING = 128,      // no system call of its own: submitted to an io_uring; the number is that of the call which does the same
};

struct event_header {
	unsigned int position;
	unsigned short length; // of the whole event [B]
	unsigned char kind;
	unsigned char flags;
};

struct call_event { // 64 B and what the flags announce
	struct event_header header;
	unsigned long long start_ns;               // CLOCK_MONOTONIC
	unsigned long long duration_ns_and_number; // duration << 16 | number of the call on x86-64
	unsigned int tid;
	int fd;                  // the descriptor worked on, for calls that make one the new one; -1: none
	long long result;
	unsigned long long file; // id of the object worked on, after the call where it makes one; 0: none
	long long offset;        // file position after the call, or the offset argument of positioned calls; -1: none
	unsigned long long extra; // bytes asked for (transfers), flags (opens), length (truncate); 0: none
};

struct call_second_file { // of copies: the file written to; of two-ended calls (pipe, socketpair) the second object
	unsigned long long file;
	long long offset;
};

struct call_path { // as the program gave it; the block is padded to 8
	unsigned long long base; // id of the directory that a relative path starts from; 0: not known
	unsigned short length;   // [B], without the NUL; longer paths are cut at 4,095
	unsigned short flags;    // 1: could not be read
	unsigned int pad;
	char bytes[];
};

struct call_mapping { // of mmap
	unsigned long long length;
	unsigned long long offset;
	unsigned int protection;
	unsigned int flags;
};

enum path_flag {
	PATH_DELETED = 1, // its name is no longer in a directory
	PATH_CUT = 2,     // more components, or longer ones, than fit: the root end is missing
	PATH_NO_DIRECTORY = 4, // a pipe, a socket, a memory file: `names` is what the kernel calls it
};

struct path_event {
	struct event_header header;
	unsigned long long id;
	unsigned long long inode;
	unsigned int device;     // major << 20 | minor
	unsigned short mode;     // of the inode: kind and permissions
	unsigned short flags;    // path_flag
	unsigned int magic;      // of the file system, as statfs has it
	unsigned short length;   // bytes of `names`
	unsigned short count;    // names
	unsigned long long size; // of the file [B], when the event was written
	char names[];            // from the leaf to the root: a byte with the length, then the name; padded to 8
};

struct fork_event {
	struct event_header header;
	unsigned long long at_ns;
	unsigned int parent_tid, parent_pid;
	unsigned int tid, pid; // pid: thread group
	char comm[16];
};

struct exec_event {
	struct event_header header;
	unsigned long long at_ns;
	unsigned int tid, pid;
	unsigned int old_tid;          // of the thread that called exec: it gets the id of the first
	unsigned short filename_length; // bytes of `text` that are the path given to exec
	unsigned short arguments_length; // bytes behind those: arguments, each ended by NUL; cut at 1,024
	char comm[16];
	char text[]; // padded to 8
};

struct exit_event {
	struct event_header header;
	unsigned long long at_ns;
	unsigned int tid, pid;
	unsigned int status;     // as wait has it
	unsigned int last;       // 1: no thread of the process is left
	unsigned long long user_ns, system_ns;     // of the thread, by the kernel's clock tick: good for their ratio only
	unsigned long long minor_faults, major_faults;
	unsigned long long read_chars, write_chars, read_calls, write_calls; // as /proc/PID/io has them, of the thread
	unsigned long long read_bytes, write_bytes, cancelled_bytes;
	unsigned long long cpu_ns; // both together, exactly
};

struct signal_event {
	struct event_header header;
	unsigned long long at_ns;
	unsigned int tid;
	int signal;
	int code;
	unsigned int sender_pid;
};

struct task_event {
	struct event_header header;
	unsigned long long started_ns; // CLOCK_MONOTONIC
	unsigned int tid, pid, parent_pid;
	unsigned short arguments_length;
	unsigned short pad;
	char comm[16];
	char arguments[]; // each ended by NUL; padded to 8
};

// Of event_header.flags, for EVENT_FAULT.
enum fault_flag {
	FAULT_MAJOR = 1,   // the page had to be waited for
	FAULT_WRITE = 2,
	FAULT_FETCH = 4,   // of an instruction
	FAULT_SHARED = 8,  // what is written reaches the file
	FAULT_MAPPED = 16, // the page was mapped already, but not for what was tried
	FAULT_IN_CALL = 32, // the kernel touched the page, for a system call
	FAULT_COUNTED = 64, // `brought_in_pages` is known
};

struct fault_event {
	struct event_header header;
	unsigned long long start_ns; // CLOCK_MONOTONIC
	unsigned long long duration_ns;
	unsigned int tid;
	unsigned int around_pages; // that were offered to be mapped at once, from `around_page` on; 0: not known, or none
	unsigned long long address;
	unsigned long long file;
	unsigned long long offset;      // of the page in the file [B]
	unsigned long long around_page; // number of the page in the file
	unsigned int brought_in_pages;  // that were mapped by it
	unsigned int pad;
};

// Of event_header.flags, for EVENT_PAGE_IO.
enum page_io_flag {
	PAGE_IO_WRITE = 1,
	PAGE_IO_AHEAD = 2,  // by read-ahead
	PAGE_IO_DEVICE = 4, // the pages are of a block device, not of a file: as a rule what the file system notes for itself
	PAGE_IO_MEMORY = 8, // they are in no page cache
};

struct page_io_event {
	struct event_header header;
	unsigned long long at_ns;
	unsigned long long file;  // its id; 0: not told yet, or none
	unsigned long long inode; // by which a path event may tell it later
	long long offset;         // in the file [B]; -1: none, or not in one piece
	unsigned int device;      // of the inode: major << 20 | minor
	unsigned int bytes;
	unsigned int tid; // 0: none that is recorded
	unsigned int pad;
};

struct aio_submit_event {
	struct event_header header;
	unsigned long long at_ns;    // return of io_submit
	unsigned long long start_ns; // its entry
	unsigned long long context;  // what io_setup gave
	unsigned long long block;    // address of the control block: with the context, the operation's name
	unsigned long long file;     // its id
	long long offset;            // -1: none
	long long bytes;             // asked for; -1: no transfer, or not known
	unsigned int tid;
	int fd;
	unsigned int opcode; // IOCB_CMD_*
	unsigned int pad;
};

struct aio_done_event {
	struct event_header header;
	unsigned long long at_ns; // return of io_getevents
	unsigned long long context;
	unsigned long long block;
	long long result;
	unsigned int tid; // who took it
	unsigned int pad;
};

enum stack_flag {
	STACK_AGAIN = 1, // of an id that was told already, to see whether it is the same stack
};

struct stack_event {
	struct event_header header;
	unsigned long long at_ns;
	unsigned long long id;    // as calls name it
	unsigned long long image; // what lies where
	unsigned long long ip, sp, bp, bx, r12, r13, r14, r15; // of the user, at the call; sp is rounded down to 8
	unsigned int tid;
	unsigned int offset;      // of these bytes from sp; the parts of a stack come one behind another
	char bytes[];
};

enum python_flag {
	PYTHON_CUT = 1, // there are more frames, or what should be one is none
};

struct python_frame {
	unsigned long long code; // id, as EVENT_PYTHON_CODE has it
	unsigned int at;         // of the instruction, from the code object on [B]
	unsigned int entry;      // 1: the last frame that one call of the evaluation loop works on
};

#define PYTHON_FRAMES 64

struct python_event { // the innermost frame first
	struct event_header header;
	unsigned long long at_ns;
	unsigned long long id; // of the stack
	unsigned int tid;
	unsigned int number;
	struct python_frame frames[PYTHON_FRAMES]; // as many as there are
};

#define PYTHON_NAME_BYTES 512
#define PYTHON_LINES_BYTES 12288

struct python_text {
	unsigned int length; // of the whole text, in characters
	unsigned int state;  // as the object has it: bytes a character, kinds
	char bytes[PYTHON_NAME_BYTES];
};

struct python_code_event {
	struct event_header header;
	unsigned long long id;
	unsigned int first_line;
	unsigned int first_instruction; // from the code object on [B]
	struct python_text file, name;
	unsigned long long lines_bytes; // of the whole table, of which more than PYTHON_LINES_BYTES are left out
	char lines[];                   // co_linetable; padded to 8
};

struct mapped_event {
	struct event_header header;
	unsigned long long image;  // made of
	unsigned long long parent; // this one, and
	unsigned long long start, length, offset, file;
	unsigned long long at_ns;
};

#define AUXILIARY_WORDS 40
#define AUXILIARY_BASE 7 // AT_BASE, of the loader
#define AUXILIARY_HEADERS 3 // AT_PHDR, of the program

struct program_event {
	struct event_header header;
	unsigned long long image;
	unsigned long long at_ns;
	unsigned long long file;
	unsigned long long code_start, code_bytes; // of the program's own code
	unsigned long long auxiliary[AUXILIARY_WORDS]; // what the kernel tells the program, as pairs: getauxval(3)
};
