// Events about stacks: copies of them, the location of code, functions of Python.
#pragma once

#include "bpf/event.h"

enum stacks_kind {
	EVENT_STACK = 16, // a part of a stack, before the call that it belongs to
	EVENT_MAPPED = 17, // code of a file was mapped (for processes that existed before: written by the user side)
	EVENT_PROGRAM = 18, // a program was mapped by the kernel
	EVENT_PYTHON = 19, // the Python frames, before the first part of the stack that they belong to
	EVENT_PYTHON_CODE = 22, // name and lines of a Python function; before or after the first event that names it
};

enum stack_flag {
	STACK_AGAIN = 1, // its id was reported before; sent to check that it is the same stack
	STACK_OF_SAMPLE = 2, // of a sample, which follows, not of a call
	STACK_INTERRUPTED = 4, // ip is the next instruction; otherwise the instruction before it entered the kernel
};

struct stack_event {
	struct event_header header;
	unsigned long long at_ns;
	unsigned long long id;    // as in calls
	unsigned long long image; // id of the location of code
	unsigned long long ip, sp, bp, bx, r12, r13, r14, r15; // registers of the program at the call; sp is rounded down to 8
	unsigned int tid;
	unsigned int offset;      // offset of these bytes from sp; the parts of a stack are consecutive
	char bytes[];
};

enum python_flag {
	PYTHON_CUT = 1, // there are more frames, or a frame is invalid
	PYTHON_OF_SAMPLE = STACK_OF_SAMPLE,
};

struct python_frame {
	unsigned long long code; // id of the code object, as in EVENT_PYTHON_CODE
	unsigned int at;         // offset of the instruction in the code object [B]
	unsigned int entry;      // 1: the outermost frame of one call of the evaluation loop
};

#define PYTHON_FRAMES 64

struct python_event { // innermost frame first
	struct event_header header;
	unsigned long long at_ns;
	unsigned long long id; // id of the stack
	unsigned int tid;
	unsigned int number;
	struct python_frame frames[PYTHON_FRAMES]; // as many as there are
};

#define PYTHON_NAME_BYTES 512
#define PYTHON_LINES_BYTES 12288

struct python_text {
	unsigned int length; // length of the whole text, in characters
	unsigned int state;  // bits of the object: bytes per character, kinds
	char bytes[PYTHON_NAME_BYTES];
};

struct python_code_event {
	struct event_header header;
	unsigned long long id;
	unsigned int first_line;
	unsigned int first_instruction; // offset in the code object [B]
	struct python_text file, name;
	unsigned long long lines_bytes; // length of the whole table, which is cut at PYTHON_LINES_BYTES
	char lines[];                   // co_linetable; padded to 8
};

struct mapped_event {
	struct event_header header;
	unsigned long long image;  // the new image, made of
	unsigned long long parent; // this image and the mapping
	unsigned long long start, length, offset, file;
	unsigned long long at_ns;
};

#define AUXILIARY_WORDS 40
#define AUXILIARY_BASE 7 // AT_BASE: address of the loader
#define AUXILIARY_HEADERS 3 // AT_PHDR: address of the program's headers

struct program_event {
	struct event_header header;
	unsigned long long image;
	unsigned long long at_ns;
	unsigned long long file;
	unsigned long long code_start, code_bytes; // code of the program itself
	unsigned long long auxiliary[AUXILIARY_WORDS]; // the auxiliary vector, as pairs: getauxval(3)
};
