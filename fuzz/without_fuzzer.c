/* What code that counts branches calls. Build scripts contain such code, as they are made of our own crates, and no fuzzer that answers. */
void __sanitizer_cov_8bit_counters_init(void) {}
void __sanitizer_cov_pcs_init(void) {}
void __sanitizer_cov_trace_pc_indir(void) {}
void __sanitizer_cov_trace_cmp1(void) {}
void __sanitizer_cov_trace_cmp2(void) {}
void __sanitizer_cov_trace_cmp4(void) {}
void __sanitizer_cov_trace_cmp8(void) {}
void __sanitizer_cov_trace_const_cmp1(void) {}
void __sanitizer_cov_trace_const_cmp2(void) {}
void __sanitizer_cov_trace_const_cmp4(void) {}
void __sanitizer_cov_trace_const_cmp8(void) {}
void __sanitizer_cov_trace_switch(void) {}
