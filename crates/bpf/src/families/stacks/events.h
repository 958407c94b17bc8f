// Events about stacks: copies of them, what code lies where, functions of Python.
#pragma once

#include "bpf/event.h"

enum stacks_kind {
	EVENT_STACK = 16, // a part of a stack, before the call that it belongs to
	EVENT_MAPPED = 17, // code of a file was mapped (of processes that were there before: written by the user side)
	EVENT_PROGRAM = 18, // a program was mapped by the kernel
	EVENT_PYTHON = 19, // where Python stands, before the first part of the stack that it belongs to
	EVENT_PYTHON_CODE = 22, // what a function of Python is called, and its lines; before or after the first event that names it
};

enum stack_flag {
	STACK_AGAIN = 1, // of an id that was reported already, to see whether it is the same stack
	STACK_OF_SAMPLE = 2, // not of a call: a sample comes after it
	STACK_INTERRUPTED = 4, // ip is the next instruction; else the one before it entered the kernel
};

struct stack_event {
	struct event_header header;
	unsigned long long at_ns;
	unsigned long long id;    // as calls name it
	unsigned long long image; // what lies where
	unsigned long long ip, sp, bp, bx, r12, r13, r14, r15; // of the user, at the call; sp is rounded down to 8
	unsigned int tid;
	unsigned int offset;      // of these bytes from sp; the parts of a stack come one after another
	char bytes[];
};

enum python_flag {
	PYTHON_CUT = 1, // there are more frames, or what should be one is none
	PYTHON_OF_SAMPLE = STACK_OF_SAMPLE,
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
	unsigned long long auxiliary[AUXILIARY_WORDS]; // what the kernel gives the program, as pairs: getauxval(3)
};
