# A fault, its handler and the return from it: 20 instructions are executed; the one that faults is executed once.
.globl _start
_start:
    mov $13, %eax           # 1: rt_sigaction
    mov $11, %edi           # 2: SIGSEGV
    lea action(%rip), %rsi  # 3
    xor %edx, %edx          # 4
    mov $8, %r10d           # 5
    syscall                 # 6
    xor %ebx, %ebx          # 7
faulty:
    movq $1, (%rbx)         # 8: faults at address 0; executed once the handler has changed its address
    call function           # 9
    mov $60, %eax           # 10
    xor %edi, %edi          # 11
    syscall                 # 12: exit(0)

function:
    push %rbx               # 13
    pop %rax                # 14
    ret                     # 15

handler:
    lea buffer(%rip), %rax  # 16
    mov %rax, 128(%rdx)     # 17: RBX of the interrupted code (ucontext.uc_mcontext.gregs[REG_RBX])
    ret                     # 18

restorer:
    mov $15, %eax           # 19: rt_sigreturn
    syscall                 # 20

.data
action:
    .quad handler
    .quad 0x04000004        # SA_RESTORER | SA_SIGINFO
    .quad restorer
    .quad 0
.bss
buffer: .skip 16
