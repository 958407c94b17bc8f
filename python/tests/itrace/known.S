# A program whose instructions are known: 20,009 are executed, and a REP prefix repeats one of them 100 times.
.globl _start
_start:
    mov $100, %ecx          # 1
    lea buffer(%rip), %rdi  # 2
    xor %eax, %eax          # 3
    cld                     # 4
    rep stosb               # 5: a hundred iterations
    mov $10000, %ecx        # 6
again:
    dec %ecx                # 10,000 times
    jnz again               # 10,000 times
    mov $60, %eax           # 7
    xor %edi, %edi          # 8
    syscall                 # 9: exit(0)
.bss
buffer: .skip 128
