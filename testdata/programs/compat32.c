// Calls of a 32-bit program by their numbers there, without any library: gcc -m32 -nostdlib -static. Ends with the number of the step that failed.

typedef unsigned int u32;
typedef unsigned long long u64;

static int call6(int number, u32 a, u32 b, u32 c, u32 d, u32 e, u32 f)
{
	u32 arguments[7] = { a, b, c, d, e, f, number };
	int result;

	__asm__ volatile("pushl %%ebp\n\tpushl %%ebx\n\t"
			 "movl (%%eax),%%ebx\n\tmovl 4(%%eax),%%ecx\n\tmovl 8(%%eax),%%edx\n\tmovl 12(%%eax),%%esi\n\t"
			 "movl 16(%%eax),%%edi\n\tmovl 20(%%eax),%%ebp\n\tmovl 24(%%eax),%%eax\n\tint $0x80\n\t"
			 "popl %%ebx\n\tpopl %%ebp"
			 : "=a"(result)
			 : "a"(arguments)
			 : "ecx", "edx", "esi", "edi", "memory");
	return result;
}

#define call(number, ...) call_(number, __VA_ARGS__, 0, 0, 0, 0, 0, 0)
#define call_(number, a, b, c, d, e, f, ...) call6(number, (u32)(a), (u32)(b), (u32)(c), (u32)(d), (u32)(e), (u32)(f))

struct part {
	const void *bytes;
	u32 length;
};

struct message {
	void *name;
	u32 name_length;
	struct part *parts;
	u32 number;
	void *control;
	u32 control_length, flags;
};

struct sized_message {
	struct message message;
	u32 length;
};

static char buffer[4096];

static int steps(void)
{
	struct part parts[3] = { { buffer, 100 }, { buffer, 200 }, { buffer, 300 } };
	struct message message = { .parts = parts, .number = 3 };
	struct sized_message messages[9], received[9];
	u64 position = 0, offset = 8192;
	u32 short_offset = 100, state[64], sockets[3] = { 2, 1, 0 }; // AF_INET, SOCK_STREAM
	u32 pair[2], of_pair[4] = { 1, 2, 0, (u32)pair };            // AF_UNIX, SOCK_DGRAM
	int file = call(5, "compat32.dat", 0101102, 0644);              // open
	int copy = call(295, -100, "compat32.copy", 0101102, 0644);     // openat

	if (file < 0 || copy < 0)
		return 1;
	for (int i = 0; i < 10; i++)
		if (call(4, file, buffer, 4096) != 4096) // write
			return 2;
	if (call(146, file, parts, 3) != 600) // writev
		return 3;
	if (call(181, file, buffer, 500, 0x40000000, 1) != 500) // pwrite64, at 5 GiB
		return 4;
	if (call(180, file, buffer, 300, 0x40000000, 1) != 300) // pread64
		return 5;
	if (call(140, file, 1, 0x40000000, &position, 0) || position != 5ULL << 30) // _llseek
		return 6;
	if (call(3, file, buffer, 50) != 50) // read
		return 7;
	if (call(194, file, 0x80000000, 1)) // ftruncate64, to 6 GiB
		return 8;
	if (call(195, "compat32.dat", state) || call(197, file, state)) // stat64, fstat64
		return 9;
	if (call(239, copy, file, &offset, 4096) != 4096) // sendfile64
		return 10;
	if (call(187, copy, file, &short_offset, 200) != 200) // sendfile
		return 11;
	if (call(102, 8, of_pair)) // socketcall: socketpair
		return 12;
	if (call(370, pair[0], &message, 0) != 600 || call(372, pair[1], &message, 0) != 600) // sendmsg, recvmsg
		return 13;
	for (int i = 0; i < 9; i++) {
		messages[i].message = message;
		messages[i].message.number = 1 + i % 3;
		received[i].message = message;
	}
	if (call(345, pair[0], messages, 9, 0) != 9 || call(337, pair[1], received, 9, 0, 0) != 9) // sendmmsg, recvmmsg
		return 17;
	int other = call(102, 1, sockets); // socketcall: socket
	if (other < 0 || call(6, other))   // close
		return 14;
	if ((u32)call(192, 0, 8192, 1, 1, file, 1) > -4096u) // mmap2, from page 1
		return 15;
	if (call(33, "compat32.nothing", 0) != -2) // access
		return 16;
	call(34, 0);  // nice: 64-bit programs have none
	call(199, 0); // getuid32
	call(10, "compat32.copy"); // unlink
	call(10, "compat32.dat");
	return 0;
}

void _start(void)
{
	call(252, steps()); // exit_group
}
